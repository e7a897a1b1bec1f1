"""Numbers in words: English integers, decimals, fractions, ranks and scales; integers of further languages."""

from __future__ import annotations

import functools
import re
import unicodedata
from fractions import Fraction
from itertools import product

from assay.verify.math import tables

_TABLE = tables.load("number_words")
_ENGLISH = _TABLE["english"]
_ROWS = _TABLE["languages"]["english"]["words"].split(";")


def _numbered(words: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Words in a row by what they count, from ``first`` in steps."""
    return {word: first + step * n for n, entry in enumerate(words.split()) for word in entry.split("/")}


_SMALL = _numbered(_ROWS[0]) | _numbered(_ROWS[1], 20, 10)
_GROUPS = {word: 1000 ** (4 - n) for n, row in enumerate(_TABLE["groups"]) for word in row.split()}
_PARTS = _numbered(_ENGLISH["parts"], 2) | _numbered(_ENGLISH["parts_of_tens"], 20, 10)
_RANKS = {word: n for word, n in _PARTS.items() if word[-1] in "hd"} | {"first": 1, "second": 2}
_PARTS |= {word: 10 ** int(n) for n, word in _ENGLISH["parts_of_powers"].items()}
_PARTS |= {f"{word}s": n for word, n in _PARTS.items() if not word.startswith("hal")}
_SIGNS = dict.fromkeys(_ENGLISH["minus"].split(), -1) | dict.fromkeys(_ENGLISH["plus"].split(), 1)
NUMBER_WORDS = frozenset((*_SMALL, *_PARTS, "hundred", "thousand", "million", "billion", "trillion", "dozen"))

_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_RUN = re.compile(rf"\b(?:{_WORD})(?:(?:-|\s)(?:(?:and|point)\s)?(?:an?\s)?(?:{_WORD})\b)*", re.IGNORECASE)
_ARTICLE_RUN = re.compile(r"\ban? (?=(?:half|third|quarter|fourth|fifth|sixth|eighth|tenth|hundred|thousand)\b)", re.I)
_HEADS = frozenset(word[:3] for word in NUMBER_WORDS)
_LETTERS = re.compile(r"[^\W\d_]{2,}")


@functools.lru_cache(4096)
def number_words(text: str) -> Fraction | None:
    """Return the number that the whole of ``text`` spells, ``None`` if it is none. At most 24 words are read.

    ``twenty-five``, ``one hundred and five``, ``three and a half``, ``two thirds``, ``a dozen``, ``minus four``,
    ``one point five``; integers below a million in other languages (``veinticinco``, ``fünfundzwanzig``).
    """
    if len(text) > 240:
        return None
    words = text.casefold().replace("-", " ").split()
    if not words or len(words) > 24:
        return None
    sign = _SIGNS.get(words[0], 0)
    words = words[1:] if sign else words
    value = _point(words) if "point" in words else _cardinal(words)
    if value is None:
        value = _fraction(words)
    return None if value is None else (sign or 1) * value


def in_digits(text: str) -> str:
    """Return ``text`` with every run of English number words in digits: ``one in fifty-six`` as ``1 in 56``."""

    def written(match: re.Match[str]) -> str:
        value = number_words(match.group())
        if value is None:
            first, link, rest = match.group().partition(" and ")
            return f"{in_digits(first)}{link}{in_digits(rest)}" if link else first
        return str(value) if value.denominator == 1 else f"({value})"

    if _HEADS.isdisjoint([word[:3] for word in _LETTERS.findall(text.casefold())]):
        return text
    return _RUN.sub(written, _ARTICLE_RUN.sub("one ", text))


@functools.cache
def _scales() -> tuple[dict[str, int], re.Pattern[str]]:
    powers = _TABLE["scales"].items()
    scales = {word.replace("_", " "): 10 ** int(n) for n, words in powers for word in words.split()} | {"dozen": 12}
    names = "|".join(sorted(scales, key=len, reverse=True))
    digits = r"(?<![0-9.,])([0-9]{1,15}(?:,[0-9]{3}){0,5}(?:\.[0-9]{1,15})?)"
    return scales, re.compile(rf"{digits}\s?({names})s?\b", re.IGNORECASE)


def in_full(text: str) -> str:
    """Return ``text`` with every number before a scale written out, if that is an integer."""
    scales, pattern = _scales()

    def written(match: re.Match[str]) -> str:
        value = Fraction(match[1].replace(",", "")) * scales[match[2].lower()]
        return str(value) if value.denominator == 1 else match[0]

    return pattern.sub(written, text)


def ordinal(text: str) -> int | None:
    """Return the rank below 100 that the whole of ``text`` names (``seventh``, ``twenty-first``), else ``None``."""
    words = text.casefold().replace("-", " ").split()
    if len(words) == 2 and _SMALL.get(words[0], 0) >= 20 and 0 < _RANKS.get(words[1], 0) < 10:
        return _SMALL[words[0]] + _RANKS[words[1]]
    return _RANKS.get(words[0]) if len(words) == 1 else None


def _cardinal(words: list[str]) -> Fraction | None:
    """An integer or dozens."""
    if words[-1:] not in (["dozen"], ["dozens"]):
        whole = _integer("".join(words))
        return None if whole is None else Fraction(whole)
    if (few := words[:-1]) in (["half", "a"], ["a", "half"]):
        return Fraction(6)
    several = Fraction(1) if few in ([], ["a"]) else _cardinal(few)
    return several and several * 12


def _integer(text: str) -> int | None:
    """The integer that words without blanks spell in one of the languages; accents do not matter."""
    flat = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    for said, spelling in _TABLE["respelled"].items():
        flat = flat.replace(said, spelling)
    table, total = _below_thousand(), 0
    for group, factor in _GROUPS.items():
        head, mark, tail = flat.partition(group)
        if mark:
            one = ("a", "an") if group in NUMBER_WORDS else ("",)  # "a thousand", but "mille"
            several = 1 if head in one else table.get(head)
            if not several:
                return None
            total, flat = total + several * factor, tail.removeprefix("and") or tail
    if total and not flat:
        return total
    rest = table.get(flat)
    return None if rest is None or (total and not rest) else total + rest


def _point(words: list[str]) -> Fraction | None:
    place = words.index("point")
    whole = Fraction(0) if place == 0 else _cardinal(words[:place])
    digits = [_SMALL.get(word, 99) for word in words[place + 1 :]]
    if whole is None or not digits or max(digits) > 9:
        return None
    return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))


def _fraction(words: list[str]) -> Fraction | None:
    """``two thirds``, ``a half``, ``one and three quarters``, ``three over four``."""
    if "over" in words:
        place = words.index("over")
        top, bottom = _cardinal(words[:place]), _cardinal(words[place + 1 :])
        return top / bottom if top is not None and bottom else None
    if len(words) >= 2 and words[-2:] == ["of", "one"]:
        words = words[:-2]
    if not words or words[-1] not in _PARTS:
        return None
    if len(words) > 2 and _SMALL.get(words[-2], 0) >= 20 and 2 < _PARTS[words[-1]] < 10:
        # "three fifty-sixths"
        count = Fraction(1) if words[:-2] in (["a"], ["one"]) else _cardinal(words[:-2])
        return None if count is None else count / (_SMALL[words[-2]] + _PARTS[words[-1]])
    if "and" in words:
        place = len(words) - 1 - words[::-1].index("and")
        whole, part = _cardinal(words[:place]), _fraction(words[place + 1 :])
        return None if whole is None or part is None else whole + part
    head = words[:-1]
    if head in ([], ["a"], ["an"]):
        # "third" alone is an ordinal.
        if not head and words[-1] not in ("half", "quarter"):
            return None
        return Fraction(1) / _PARTS[words[-1]]
    count = Fraction(int(head[0])) if len(head) == 1 and head[0].isdecimal() else _cardinal(head)
    return None if count is None else count / _PARTS[words[-1]]


@functools.cache
def _below_thousand() -> dict[str, int]:
    """The integers below 1,000 of all languages, without blanks."""
    found: dict[str, int] = {}
    for language in _TABLE["languages"].values():
        rows = zip(language["words"].split(";"), (0, 20, 100), (1, 10, 100), strict=True)
        small, tens, hundreds = (_numbered(*row) for row in rows)
        below = small | tens
        for (ten, many), (unit, few), link in product(tens.items(), small.items(), language.get("links", [""])):
            if 0 < few < (20 if ten in language.get("to_nineteen", ()) else 10):
                head = ten[:-1] if language.get("elides") and unit[0] in "aeiou" else ten
                below[f"{unit}{link}{ten}" if language.get("units_first") else f"{head}{link}{unit}"] = many + few
        if hundred := language.get("hundred"):
            most = language.get("hundreds_below", 10)
            hundreds |= {f"{word}{hundred}": 100 * n for word, n in below.items() if n < most and n % 10}
        links = language.get("hundred_links", [""])
        joined = {h + link + b: n + m for (h, n), link, (b, m) in product(hundreds.items(), links, below.items()) if m}
        found = joined | hundreds | below | found
    return {word: n for word, n in found.items() if word not in _TABLE["misleading"].split()}
