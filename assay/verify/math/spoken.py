# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
r"""Arithmetic in words: ``ten times the square root of six`` as ``10 * √6``, ``two to the tenth`` as ``2 ^{10}``."""

from __future__ import annotations

import re

from assay.verify.math.words import NUMBER_WORDS, number_words, ordinal

MAX_SPOKEN = 200

_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_RUN = re.compile(rf"\b(?:{_WORD})(?:(?:-|\s)(?:(?:and|point)\s)?(?:an?\s)?(?:{_WORD})\b)*", re.IGNORECASE)
_HEADS = frozenset(word[:3] for word in NUMBER_WORDS)
_ARTICLE_RUN = re.compile(r"\ban? (?=(?:half|third|quarter|fourth|fifth|sixth|eighth|tenth|hundred|thousand)\b)", re.I)
_ORDINAL_POWER = re.compile(
    r"\bto the ((?:[a-z]{3,12}[- ]){0,2}[a-z]{3,12}(?:th|st|nd|rd|ond|ird|fth))(?: power)?\b", re.I
)

# Longest first: what a rule leaves is not looked at by the ones before it.
_RULES = (
    (re.compile(r"\bplus[- ](?:or[- ])?minus\s|\+/-\s?|\+-\s?", re.I), "±"),
    (
        re.compile(
            r"\b(?:the )?(?:principal |positive )?(?:square[- ]root|"
            r"sqrt|"
            r"root|"
            r"radical)(?: of)?\s(?=[0-9a-z√(\\])",
            re.I,
        ),
        "√",
    ),
    (re.compile(r"\b(?:the )?(?:cube|cubic|third)[- ]root(?: of)?\s(?=[0-9a-z(])", re.I), "∛"),
    (re.compile(r"\b(?:the )?natural log(?:arithm)?(?: of)?\s", re.I), "ln "),
    (
        re.compile(
            r"\b(?:the )?log(?:arithm)?,?(?: to)?(?: the)?[- ]base[- ]\(?([0-9]{1,4}|[a-z])\)?(?: of)?\s",
            re.I,
        ),
        r" log_{\1} ",
    ),
    (re.compile(r"\blog(?:arithm)? of\s", re.I), "log "),
    (re.compile(r"\b(?:the )?absolute value of ([a-z]|[0-9]{1,9})\b", re.I), r"|\1|"),
    (re.compile(r"\b(?:the )?(sine|cosine|tangent) of\s", re.I), lambda m: f" {m[1][:3].lower()} "),
    (
        re.compile(
            r"\s(?:raised )?to the (?:power(?: of)? )?(?:(minus |"
            r"negative |"
            r"-)?\(?([0-9]{1,4}|"
            r"[a-z])\)?)(?:st|"
            r"nd|rd|th)?(?: power)?(?![a-z])",
            re.I,
        ),
        lambda m: f"^{{{'-' if m[1] else ''}{m[2]}}}",
    ),
    (re.compile(r"\s(?:raised )to (-?[0-9]{1,4}|[a-z])\b", re.I), r"^{\1}"),
    (re.compile(r"(?<=[0-9a-z)])\ssquared\b", re.I), "^2"),
    (re.compile(r"(?<=[0-9a-z)])\scubed\b", re.I), "^3"),
    (re.compile(r"\s(?:times|multiplied by|mal|fois|por)\s", re.I), " * "),
    (re.compile(r"\s(?:divided by|over)\s", re.I), " / "),
    (re.compile(r"\splus\s", re.I), " + "),
    (re.compile(r"\sminus\s", re.I), " - "),
    (re.compile(r"(?<![a-z])(?:minus|negative)\s", re.I), "-"),
    (re.compile(r"(?<=[0-9)])\sof\s(?=[√∛0-9(])", re.I), " * "),
)
_KNOWN = frozenset(("ln", "log", "sin", "cos", "tan", "pi", "to", "or", "and", "in", "out", "of", "mod"))
_VOCABULARY = NUMBER_WORDS | _KNOWN
_VOCABULARY |= frozenset(
    """
    a an the point principal positive square root sqrt radical cube cubic natural log logarithm base absolute value sine
    cosine tangent raised power negative squared cubed times multiplied by mal fois por divided over plus minus
    """.split()
)
"""All that a formula in words is made of, but for ranks."""
_RANKS = ("st", "nd", "rd", "th", "ond", "ird")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def in_digits(text: str) -> str:
    """Return ``text`` with every run of number words in digits: ``one in fifty-six`` as ``1 in 56``."""

    def written(match: re.Match[str]) -> str:
        value = number_words(match.group())
        if value is None:
            first, link, rest = match.group().partition(" and ")
            return f"{in_digits(first)}{link}{in_digits(rest)}" if link else first
        return str(value) if value.denominator == 1 else f"({value})"

    if _HEADS.isdisjoint([word[:3] for word in _LETTERS.findall(text.casefold())]):
        return text
    return _RUN.sub(written, _ARTICLE_RUN.sub("one ", text))


_ARTICLES = frozenset(
    ("a", "an", "un", "une", "uno", "una", "ein", "eine", "eins", "um", "uma", "een", "en", "et", "один", "одна",
     "одно", "jeden", "o", "i", "one", "once", "six")
)  # fmt: skip
"""Number words that are articles, or another word, as often as a number."""


def number_in_digits(text: str) -> str | None:
    """Return ``text`` with its one number word of any language in digits, ``None`` if it has none or several."""
    words = list(_WORDS.finditer(text))
    found: list[tuple[int, int, str]] = []
    place = 0
    while place < len(words):
        for last in range(min(place + 5, len(words)), place, -1):
            start, end = words[place].start(), words[last - 1].end()
            said = text[start:end]
            if last == place + 1 and said.casefold() in _ARTICLES:
                continue
            value = number_words(said)
            if value is not None:
                found.append((start, end, str(value)))
                place = last
                break
        else:
            place += 1
    if len(found) != 1 or not found[0][2].isdigit():
        return None
    start, end, digits = found[0]
    return f"{text[:start]}{digits}{text[end:]}"


_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def spoken(text: str) -> str | None:
    """Return the formula that ``text`` says in words, ``None`` if it holds other words or says none."""
    if len(text) > MAX_SPOKEN:
        return None
    words = _LETTERS.findall(text.casefold())
    if not words or not all(word in _VOCABULARY or word.endswith(_RANKS) for word in words):
        return None
    flat = _ORDINAL_POWER.sub(_power, text)
    flat = in_digits(flat)
    for pattern, symbol in _RULES:
        flat = pattern.sub(symbol, flat)
    flat = flat.strip()
    if flat == text or any(word.casefold() not in _KNOWN and len(word) > 1 for word in _LETTERS.findall(flat)):
        return None
    return flat


def _power(match: re.Match[str]) -> str:
    rank = ordinal(match[1])
    return match.group() if rank is None else f"to the power of {rank}"
