# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Numbers in words and in other digits: English number words, Chinese and Roman numerals, every Unicode digit."""

from __future__ import annotations

import functools
import re
import unicodedata
from fractions import Fraction

from assay.verify.math.foreign import foreign_number

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_UNITS = {
    **{word: n for n, word in enumerate(_SMALL)},
    **{word: 10 * n for n, word in enumerate(_TENS, 2)},
    "fourty": 40,
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15,
    "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
    "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90,
    "hundredth": 100, "thousandth": 1000, "millionth": 10**6, "billionth": 10**9,
}  # fmt: skip
_PARTS |= {f"{word}s": n for word, n in _PARTS.items() if not word.startswith("hal")}
_COUNTED = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
    "ноль один два три четыре пять шесть семь восемь девять десять",
)
_FOREIGN = {word: n for words in _COUNTED for n, word in enumerate(words.split())} | {
    "veinte": 20, "vingt": 20, "zwanzig": 20, "двадцать": 20, "treinta": 30, "trente": 30, "dreißig": 30,
    "cien": 100, "hundert": 100, "сто": 100, "mil": 1000, "mille": 1000, "tausend": 1000,
}  # fmt: skip
del _FOREIGN["once"], _FOREIGN["six"]  # English words that mean something else

_MINUS = ("menos", "moins")

_ORDINALS = {word: n for word, n in _PARTS.items() if not word.endswith("s") and n < 100 and n not in (2, 4)} | {
    "first": 1, "second": 2, "fourth": 4,
}  # fmt: skip


def ordinal(text: str) -> int | None:
    """Return the rank below 100 that the whole of ``text`` names (``seventh``, ``twenty-first``), else ``None``."""
    words = text.casefold().replace("-", " ").split()
    if len(words) == 2 and words[0] in _TENS and 0 < _ORDINALS.get(words[1], 0) < 10:
        return _UNITS[words[0]] + _ORDINALS[words[1]]
    return _ORDINALS.get(words[0]) if len(words) == 1 else None


NUMBER_WORDS = frozenset(_UNITS) | frozenset(_SCALES) | frozenset(_PARTS) | {"hundred", "dozen"}


@functools.lru_cache(4096)
def number_words(text: str) -> Fraction | None:
    """Return the number that the whole of ``text`` spells, ``None`` if it is none. At most 24 words are read.

    ``twenty-five``, ``one hundred and five``, ``three and a half``, ``two thirds``, ``a dozen``, ``minus four``,
    ``one point five``; single number words of Spanish, French, German and Russian.
    """
    if len(text) > 240:
        return None
    words = text.casefold().replace("-", " ").split()
    if not words or len(words) > 24:
        return None
    if len(words) == 1 and words[0] in _FOREIGN:
        return Fraction(_FOREIGN[words[0]])
    sign = 1
    if words[0] in _MINUS:
        sign, words = -1, words[1:]
    if not words:
        return None
    spoken = foreign_number("".join(words)) if words[0] not in _UNITS else None
    if spoken is not None:
        return Fraction(sign * spoken)
    if words[0] in ("minus", "negative"):
        sign, words = -1, words[1:]
    elif words[0] in ("plus", "positive"):
        words = words[1:]
    value = _cardinal(words) if "point" not in words else _point(words)
    if value is None:
        value = _fraction(words)
    return None if value is None else sign * value


def _cardinal(words: list[str]) -> Fraction | None:
    if not words:
        return None
    if words[-1] in ("dozen", "dozens"):
        several = ONE if len(words) == 1 or words[:-1] == ["a"] else _cardinal(words[:-1])
        return HALF_DOZEN if words[:-1] in (["half", "a"], ["a", "half"]) else several and several * 12
    if words[0] in ("a", "an") and len(words) > 1 and (words[1] in _SCALES or words[1] == "hundred"):
        words = ["one", *words[1:]]
    total, group, last, seen = 0, 0, 10**15, False
    previous = ""
    for place, word in enumerate(words):
        if word == "and":
            if previous not in ("hundred", *_SCALES) or place == len(words) - 1:
                return None
        elif word in _UNITS:
            n = _UNITS[word]
            # "twenty five" but neither "five twenty" nor "five six".
            if group % 100 and not (group % 100 >= 20 and group % 10 == 0 and 1 <= n <= 9):
                return None
            if n == 0 and len(words) > 1:
                return None
            group, seen = group + n, True
        elif word == "hundred":
            if not seen or not 1 <= group <= 99 or (group > 9 and group % 10 == 0):
                return None
            group *= 100
        elif word in _SCALES:
            if not group or _SCALES[word] >= last:
                return None
            last = _SCALES[word]
            total, group = total + group * last, 0
        else:
            return None
        previous = word
    return Fraction(total + group) if seen else None


def _point(words: list[str]) -> Fraction | None:
    place = words.index("point")
    whole = Fraction(0) if place == 0 else _cardinal(words[:place])
    digits = [_UNITS.get(word, 99) for word in words[place + 1 :]]
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
    if len(words) > 2 and words[-2] in _TENS and 2 < _PARTS[words[-1]] < 10:
        # "three fifty-sixths"
        count = ONE if words[:-2] in (["a"], ["one"]) else _cardinal(words[:-2])
        return None if count is None else count / (_UNITS[words[-2]] + _PARTS[words[-1]])
    if "and" in words:
        place = len(words) - 1 - words[::-1].index("and")
        whole, part = _cardinal(words[:place]), _fraction(words[place + 1 :])
        return None if whole is None or part is None else whole + part
    head = words[:-1]
    if head in ([], ["a"], ["an"]):
        # "third" alone is an ordinal.
        if not head and words[-1] not in ("half", "quarter"):
            return None
        return ONE / _PARTS[words[-1]]
    count = Fraction(int(head[0])) if len(head) == 1 and head[0].isdecimal() else _cardinal(head)
    return None if count is None else count / _PARTS[words[-1]]


ONE, HALF_DOZEN = Fraction(1), Fraction(6)

_CHINESE = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CHINESE |= dict(zip("壹贰叁肆伍陆柒捌玖", range(1, 10), strict=True))
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000}
_CHINESE_GROUPS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
CHINESE_NUMERAL = re.compile("[负負]?[" + "".join([*_CHINESE, *_CHINESE_SCALES, *_CHINESE_GROUPS]) + "点點]{1,24}")


def chinese(text: str) -> Fraction | None:
    """Return the number a Chinese numeral writes (``二十五``, ``三百零四``, ``二分之一``), ``None`` if it is none."""
    for mark in ("分之",):
        if mark in text:
            bottom, _, top = text.partition(mark)
            a, b = chinese(top), chinese(bottom)
            return a / b if a is not None and b else None
    if not text or CHINESE_NUMERAL.fullmatch(text) is None:
        return None
    if text[0] in "负負":
        value = chinese(text[1:])
        return None if value is None else -value
    whole, point, decimals = text.replace("點", "点").partition("点")
    if point:
        if not decimals or any(c not in _CHINESE for c in decimals):
            return None
        head = chinese(whole)
        digits = "".join(str(_CHINESE[c]) for c in decimals)
        return None if head is None else head + Fraction(int(digits), 10 ** len(digits))
    if all(c in _CHINESE for c in whole):
        return Fraction(int("".join(str(_CHINESE[c]) for c in whole)))
    total = group = digit = 0
    for c in whole:
        if c in _CHINESE:
            digit = _CHINESE[c]
        elif c in _CHINESE_SCALES:
            group, digit = group + (digit or 1) * _CHINESE_SCALES[c], 0
        else:
            total, group, digit = (total + group + digit) * _CHINESE_GROUPS[c], 0, 0
    return Fraction(total + group + digit)


_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN_NUMERAL = re.compile("M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def roman(text: str) -> int | None:
    """Return the number a Roman numeral in capitals writes, ``None`` if it is none."""
    if not text or _ROMAN_NUMERAL.fullmatch(text) is None:
        return None
    values = [_ROMAN[c] for c in text]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def western_digits(text: str) -> str:
    """Return ``text`` with every decimal digit of any script as 0-9, and Arabic separators as ``.`` and ``,``."""
    if text.isascii():
        return text
    out = []
    for c in text:
        if "\u0660" <= c <= "\uffff" or c > "\uffff":
            digit = unicodedata.decimal(c, None)
            out.append(c if digit is None else str(digit))
        else:
            out.append(c)
    return "".join(out).replace("\u066b", ".").replace("\u066c", ",").replace("\u066a", "%")
