"""How numbers and terms are written; shared by the families."""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

MINUS = "\N{MINUS SIGN}"
VULGAR = {
    Fraction(top, bottom): sign
    for bottom, row in {2: "½", 3: "⅓⅔", 4: "¼ ¾", 5: "⅕⅖⅗⅘", 6: "⅙   ⅚", 8: "⅛ ⅜ ⅝ ⅞"}.items()
    for top, sign in enumerate(row, 1)
    if sign != " "
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def digits_of(value: float, places: int) -> tuple[Fraction, str]:
    """Return a rounded decimal, as an exact number and as text."""
    text = f"{value:.{places}f}"
    return Fraction(text), text


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


def plus(c: int) -> str:
    """Return ``+ 3`` or ``- 3``."""
    return f"+ {c}" if c >= 0 else f"- {-c}"


def signed(value: Fraction | int, tail: str = "", latex: bool = True, first: bool = False) -> str:
    """Write a term with its sign in front: ``+ 3x``, ``- x``; nothing for 0."""
    value = Fraction(value)
    if not value:
        return ""
    size = abs(value)
    number = "" if size == 1 and tail else (tex(size) if latex else plain(size))
    if not latex and tail and size.denominator > 1:
        number = f"({number})"
    if first:
        return ("-" if value < 0 else "") + number + tail
    return (" - " if value < 0 else " + ") + number + tail


@functools.cache
def table(name: str) -> Any:
    """Return a table of ``tables.toml``: words, units, questions."""
    return tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8"))[name]


def english(number: int, hyphen: str = "-", link: str = " ") -> str:
    """Return ``0 <= number < 1_000_000`` in words; ``link`` is between the hundreds and the rest (`" and "`)."""
    words = table("number_words")["english"]
    if number < 20:
        return str(words["ones"][number])
    if number < 100:
        tens, one = divmod(number, 10)
        return str(words["tens"][tens]) + (hyphen + english(one) if one else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{english(hundreds)} hundred" + (link + english(rest, hyphen, link) if rest else "")
    thousands, rest = divmod(number, 1000)
    between = link if rest < 100 else " "
    return f"{english(thousands, hyphen, link)} thousand" + (between + english(rest, hyphen, link) if rest else "")
