"""Numerals that are no words and no Western digits: Chinese and Roman numerals, the digits of every script."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_CHINESE = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CHINESE |= dict(zip("壹贰叁肆伍陆柒捌玖", range(1, 10), strict=True))
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000}
_CHINESE_GROUPS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
CHINESE_NUMERAL = re.compile("[负負]?[" + "".join([*_CHINESE, *_CHINESE_SCALES, *_CHINESE_GROUPS]) + "点點]{1,24}")


def chinese(text: str) -> Fraction | None:
    """Return the number a Chinese numeral writes (``二十五``, ``三百零四``, ``二分之一``), ``None`` if it is none."""
    if "分之" in text:
        bottom, top = map(chinese, text.split("分之", 1))
        return top / bottom if top is not None and bottom else None
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
    western = (c if c < "\u0660" or (digit := unicodedata.decimal(c, None)) is None else str(digit) for c in text)
    return "".join(western).translate(_ARABIC)


_ARABIC = {0x66A: "%", 0x66B: ".", 0x66C: ","}
