"""How numbers and terms are written; shared by the families."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction

MINUS = "\N{MINUS SIGN}"
VULGAR = {
    Fraction(1, 2): "½",
    Fraction(1, 3): "⅓",
    Fraction(2, 3): "⅔",
    Fraction(1, 4): "¼",
    Fraction(3, 4): "¾",
    Fraction(1, 5): "⅕",
    Fraction(2, 5): "⅖",
    Fraction(3, 5): "⅗",
    Fraction(4, 5): "⅘",
    Fraction(1, 6): "⅙",
    Fraction(5, 6): "⅚",
    Fraction(1, 8): "⅛",
    Fraction(3, 8): "⅜",
    Fraction(5, 8): "⅝",
    Fraction(7, 8): "⅞",
}


def plain(value: Fraction | int) -> str:
    """Return ``3/4``, ``-5``."""
    return str(Fraction(value))


def tex(value: Fraction | int, command: str = "frac") -> str:
    r"""Return ``\frac{3}{4}``, ``-\frac{1}{2}``, ``7``."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value)
    sign = "-" if value < 0 else ""
    return rf"{sign}\{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def times(factor: int, text: str, sign: str = "") -> str:
    """Write ``factor`` before ``text`` and leave out a 1."""
    return {1: text, -1: f"-{text}"}.get(factor, f"{factor}{sign}{text}")


def decimal(value: Fraction) -> str | None:
    """Return the whole decimal expansion, or ``None`` if it does not end within twelve places."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return fixed(value, places)
    return None


def fixed(value: Fraction, places: int) -> str:
    """Return ``value`` with so many decimals, cut off (not rounded) towards zero."""
    scaled = abs(value) * 10**places
    digits = str(scaled.numerator // scaled.denominator).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text


def grouped(digits: str, separator: str, size: int = 3) -> str:
    """Put ``separator`` between groups of ``size`` digits, counted from the right."""
    head = len(digits) % size or size
    return separator.join([digits[:head], *(digits[i : i + size] for i in range(head, len(digits), size))])


def linear_sum(parts: Iterable[str]) -> str:
    """Join signed terms: ``["3x", "-2"]`` gives ``3x - 2``."""
    text = " + ".join(parts)
    return text.replace("+ -", "- ")


def nonzero(rng: random.Random, low: int, high: int) -> int:
    """Return an integer in ``[low, high]`` that is not 0."""
    while True:
        if value := rng.randint(low, high):
            return value


def proper(rng: random.Random, top: int = 12) -> Fraction:
    """Return a fraction that is no integer, of either sign."""
    while True:
        value = Fraction(nonzero(rng, -top, top), rng.randint(2, top))
        if value.denominator > 1:
            return value


def swapped_digits(number: int) -> int:
    """Return the number with its first two different neighbouring digits swapped; itself if there are none."""
    digits = str(abs(number))
    for i in range(len(digits) - 1):
        if digits[i] != digits[i + 1]:
            changed = int(digits[:i] + digits[i + 1] + digits[i] + digits[i + 2 :])
            return changed if number >= 0 else -changed
    return number
