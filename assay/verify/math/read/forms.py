"""Answers that a pattern recognises as a whole: numerals, truth values, options, numerals in a base."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from assay.verify.math import tables
from assay.verify.math.expressions.values import Based, Choice, Scalar, Sign, Text, Truth
from assay.verify.math.words.number_words import NUMBER_WORDS, number_words
from assay.verify.math.words.numerals import CHINESE_NUMERAL, chinese

_NUMERAL = re.compile(r"([+-]?)\s?(?:([0-9]+)(?:\.([0-9]+))?|\.([0-9]+))")
_PLAIN_FRACTION = re.compile(
    r"([+-]?)\s?(?:\\frac\{\s?(-?[0-9]{1,400})\s?\}\{\s?([0-9]{1,400})\s?\}|([0-9]{1,400})\s?/\s?([0-9]{1,400}))"
)


def numeral(text: str) -> Scalar | None:
    """Read an integer, a decimal or a fraction of integers: most answers by far."""
    if not text[-1:].isdigit() and text[-1:] != "}":
        return None
    match = _NUMERAL.fullmatch(text)
    if match is not None:
        sign, whole, digits, bare = match.groups()
        digits = digits or bare
        if digits is None:
            value = Fraction(int(sign + whole))
            return Scalar(value)
        whole = whole or ""
        value = Fraction(int(sign + whole + digits), 10 ** len(digits))
        return Scalar(value, None, len(digits), len((whole + digits).lstrip("0")))
    match = _PLAIN_FRACTION.fullmatch(text)
    if match is not None:
        sign, top, bottom, left, right = match.groups()
        over = int(bottom or right)
        if over:
            return Scalar(Fraction(int(top or left), over) * (-1 if sign == "-" else 1))
    return None


@functools.cache
def _truths() -> dict[str, bool]:
    table = tables.load("known_values")
    return dict.fromkeys(table["true"].split(), True) | dict.fromkeys(table["false"].split(), False)


@functools.cache
def _signs() -> dict[str, str]:
    table = tables.load("known_values")["signs"]
    return {word.strip(): sign for sign, words in table.items() for word in (sign, *words.split(","))}


def truth(text: str) -> Truth | None:
    word = text.casefold().strip(" .!,'\"")
    said = False if word == "not true" else _truths().get(word)
    return None if said is None else Truth(said)


def sign(text: str) -> Sign | None:
    """Read a sign of comparison, as a symbol or in words."""
    kind = _signs().get(text.casefold().strip(" .'\"").removesuffix(" sign"))
    return None if kind is None else Sign(kind)


_CHOICE = re.compile(
    r"(?i:(?:the )?(?:correct )?(?:option|choice|answer|letter|选项|選項)\s?(?:is )?:?\s?)?"
    r"(?:\(\s?([A-Ja-j])\s?\)|\[\s?([A-J])\s?\]|([A-Ja-j]))(?:\s?[.):,-]?\s?$|\s?[.):]\s?(.{1,300})$|\s(?=\S)(.{1,300})$)",
    re.DOTALL,
)
_SEVERAL = re.compile(r"\(?[A-J]\)?(?:\s?(?:,|and|&|;|,\s?and)\s?\(?[A-J]\)?){1,9}\.?|[A-J]{2,8}")
_ASSIGNED = re.compile(r"\s?[=<>+*/^-]")


_CALLED_CORRECT = re.compile(
    r"\(?([A-J])\)? is (?:the )?(?:only )?(?:correct|right|best)(?: answer| option| choice| one)?\.?", re.IGNORECASE
)


def choice(text: str) -> Choice | None:
    """Read ``C``, ``(C)``, ``C.``, ``option C``, ``(C) 12``, ``C) 12``, ``A, C``."""
    if not text[:1].isascii():
        return None
    if (said := _CALLED_CORRECT.fullmatch(text)) is not None:
        return Choice(frozenset(said[1].upper()))
    match = _CHOICE.match(text)
    if match is not None:
        first, second, bare, content, spaced = match.groups()
        letter = first or second or bare
        if spaced is not None and bare is not None:
            return None
        rest = content or spaced or ""
        if _ASSIGNED.match(rest) and first is None:
            return None
        return Choice(frozenset(letter.upper()), rest.strip())
    if _SEVERAL.fullmatch(text):
        letters = re.findall("[A-J]", text.replace("and", ""))
        return Choice(frozenset(letters)) if len(set(letters)) == len(letters) else None
    return None


_BASED = re.compile(
    r"\(?([0-9A-Za-z]{1,200})(?:\.([0-9A-Za-z]{1,100}))?\)?\s?"
    r"(?:_\s?\{?\s?\(?([0-9]{1,2}|[a-z]{3,8})\)?\s?\}?|\(?\s?(?:in )?base[- ]?\{?([0-9]{1,2}|[a-z]{3,8})\}?\s?\)?)"
)
_PREFIXED = re.compile(r"0([bBoOxX])([0-9A-Fa-f]{1,200})")


def based(text: str) -> Based | None:
    """Read ``1010_2``, ``(A3)_{16}``, ``2516 base 8``, ``0x1F``."""
    if text[:1] == "0" and (match := _PREFIXED.fullmatch(text)) is not None:
        return in_base(match[2], {"b": 2, "o": 8, "x": 16}[match[1].lower()])
    if not ("_" in text or "base" in text) or (match := _BASED.fullmatch(text)) is None:
        return None
    digits, decimals, subscript, word = match.groups()
    if subscript is not None and not digits[0].isdigit() and len(digits) == 1:
        return None  # a variable with a subscript
    named = subscript or word
    spoken = None if named.isdecimal() else number_words(named)
    if not named.isdecimal() and spoken is None:
        return None
    base = int(named) if spoken is None else int(spoken)
    return in_base(digits + ("." + decimals if decimals else ""), base)


def in_base(digits: str, base: int) -> Based | None:
    """Return the numeral with its value, ``None`` where a digit does not exist in ``base``."""
    whole, _, rest = digits.casefold().partition(".")
    if not 2 <= base <= 36 or "_" in digits:
        return None
    try:
        value = Fraction(int(whole + rest, base), base ** len(rest))
    except ValueError:
        return None
    return Based(f"{whole.lstrip('0') or '0'}{'.' + rest if rest else ''}", base, value)


def spelled(text: str) -> Scalar | None:
    """Read a number in words or in Chinese numerals."""
    if not text.isascii() and CHINESE_NUMERAL.match(text):
        value = chinese(text)
        if value is not None:
            return Scalar(value)
    value = number_words(text)
    if value is not None:
        return Scalar(value)
    if text[-1:] == "%":
        value = number_words(text[:-1])
        return None if value is None else Scalar(value / 100, percent=True)
    return None


_COUNTING = NUMBER_WORDS | {"minus", "negative", "a", "an"}
_OPERATORS = frozenset("to in out times over root plus minus squared cubed divided multiplied point of".split())  # noqa: SIM905


def counted_words(text: str) -> str | None:
    """Return ``thirty-three apples`` as ``33 apples``, ``None`` if it does not begin with number words."""
    words = text.replace("-", " ").split()
    if not words or words[0].casefold() not in _COUNTING or len(words) > 24:
        return None
    for length in range(min(len(words) - 1, 12), 0, -1):
        value = number_words(" ".join(words[:length]))
        if value is not None:
            if length == 1 and words[0].casefold() in ("a", "an", "half", "quarter"):
                return None
            if words[length].casefold() in _OPERATORS or NUMBER_WORDS.intersection(map(str.casefold, words[length:])):
                return None
            return f"{value} {' '.join(words[length:])}"
    return None


_ARTICLE = re.compile(r"^(?:the|an?|el|la|los|las|le|les|der|die|das|il|lo)\s+")
_JUNK = re.compile(r"[\"'`*]+|(?<=[^\W\d])\.(?=\s|$)")
_INDEX = re.compile(r"(?<=[^\W\d_]|[)\]])\s?_\{?([0-9]{1,3})\}?")
_LISTED = re.compile(r"[\[(]\s?[^\W\d_]{2}[^\d\[\](){}<>=+*/^\\]*[\])]")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")


def words_of(text: str) -> Text:
    """Normalise words: case, articles, quotes, hyphens, blanks, a final full stop."""
    low = text.casefold()
    if not low.isalnum():
        low = _JUNK.sub("", low)
    if "-" in low:
        low = _HYPHEN.sub(" ", low)
    low = low.replace(" ,", ",").replace(", ", ",")
    if "_" in low:
        low = _INDEX.sub(r"\1", low).replace(" ", "") if " " not in text.strip() else _INDEX.sub(r"\1", low)
    if "," in low and _LISTED.fullmatch(low):
        low = low[1:-1]
    low = " ".join(low.split()).strip(" .,;:!") or text.strip()
    if "," in low:
        low = low.replace(", and ", ",").replace(",and ", ",").replace(" and ", ",")
    return Text(_ARTICLE.sub("", low) if " " in low else low)
