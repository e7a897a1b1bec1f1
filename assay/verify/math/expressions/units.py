"""Units of measurement and currencies: what they measure, in exact multiples of a base unit."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from assay.verify.math import tables

Dimension = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` base units of ``dimension``, e.g. km/h is 5/18 of ``(("m", 1), ("s", -1))``.

    ``known`` is false where a word is only a noun that is counted ("apples"). ``offset`` is for temperatures: a value
    of v means ``v * factor + offset`` base units.
    """

    dimension: Dimension
    factor: Fraction
    known: bool = True
    offset: Fraction = Fraction(0)


_TABLE = tables.load("units")
_CASED = frozenset(_TABLE["cased"].split())
_PER = frozenset(_TABLE["per"].split())
_BEFORE = {word: power for power, key in ((2, "square"), (3, "cubic")) for word in _TABLE[f"{key}_before"].split()}
_AFTER = {word: power for power, key in ((2, "square"), (3, "cubic")) for word in _TABLE[f"{key}_after"].split()}


def _dimension(text: str) -> Dimension:
    parts = (item.partition("^") for item in text.split() if item != "1")
    return tuple(sorted((name, int(exponent or 1)) for name, _, exponent in parts))


def _named() -> Iterator[tuple[str, Unit]]:
    """Every name with its unit; those with an English plural first."""
    others: list[tuple[str, Unit]] = []
    for base, entries in _TABLE["units"].items():
        for entry in entries.split(";"):
            value, _, names = entry.strip().partition(" ")
            factor, _, offset = value.partition("+")
            unit = Unit(_dimension(base), Fraction(factor), True, Fraction(offset or 0))
            english, _, rest = names.partition("|")
            for word in english.split():
                yield word, unit
                if len(word) > 2:
                    yield f"{word}es" if word.endswith("ch") else f"{word}s", unit
            others += ((word.replace("_", " "), unit) for word in rest.split())
    yield from others


UNITS: dict[str, Unit] = {}
_LOWER: dict[str, Unit] = {}
for _name, _unit in _named():
    UNITS.setdefault(_name, _unit)
    if _name not in _CASED:
        _LOWER.setdefault(_name.casefold(), _unit)

CURRENCY = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee", "₽": "ruble", "₩": "won", "¢": "cent"}

_EXPONENT = re.compile(r"\^?\s?\{?\s?(-?[0-9])\s?\}?")
_PIECES = re.compile(r"°\s?[CF]\b|[°¢€£¥₹₽₩$'\"]|[^\W\d_]+|[/*·.]|\^\s?\{?-?[0-9]\}?|(?<=\w)[0-9]|[()]")


def lookup(word: str) -> Unit | None:
    """Return the unit called ``word``, ``None`` if it is none."""
    return UNITS.get(word) or (_LOWER.get(word.casefold()) if len(word) > 1 or not word.isalpha() else None)


def singular(noun: str) -> str:
    noun = noun.casefold()
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if noun.endswith(("sses", "xes", "ches", "shes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") and len(noun) > 2 else noun


@functools.lru_cache(4096)
def read_unit(text: str) -> Unit | None:
    """Return the unit that the whole of ``text`` names, e.g. ``km/h``, ``square feet``, ``m s^{-2}``, ``apples``.

    A word that is not in the table is a dimension of its own, and the result is not ``known``; ``None`` if ``text`` is
    no unit.
    """
    text = text.strip().rstrip(".")
    unit = lookup(text)
    if unit is not None:
        return unit
    if not text or len(text) > 80 or _PIECES.sub("", text).strip():
        return None
    powers: dict[str, int] = {}
    factor, offset, known = Fraction(1), Fraction(0), True
    sign, before, words = 1, 1, 0
    last: tuple[Unit, int] | None = None  # what an exponent after it belongs to
    for piece in _PIECES.findall(text):
        low = piece.casefold().replace(" ", "")
        if low in _PER or (low in ("each", "every") and last is not None):
            if low in ("a", "an", "в") and (last is None or not known):
                return None
            sign = -1
            continue
        if piece in "*·.()" or low == "of":
            continue
        if low in _BEFORE:
            before = _BEFORE[low]
            continue
        exponent = _AFTER.get(low)
        if exponent is None and (match := _EXPONENT.fullmatch(piece)):
            exponent = int(match[1])
        if exponent is not None:
            if last is None or exponent == 0:
                return None
            unit, times = last[0], last[1] * (exponent - 1)
            last = None
        else:
            unit = lookup(low if low in ("°c", "°f") else piece)
            if unit is None:
                if len(piece) < 2 and piece.isascii():
                    return None
                unit = Unit(((singular(piece), 1),), Fraction(1), False)
            if low in ("celsius", "fahrenheit", "c", "f") and powers == {"deg": 1}:
                powers, factor = {}, Fraction(1)
                unit = UNITS["celsius" if low.startswith("c") else "fahrenheit"]
            known, offset, times, last = known and unit.known, unit.offset, sign * before, (unit, sign)
            before, words = 1, words + 1
        for base, power in unit.dimension:
            powers[base] = powers.get(base, 0) + power * times
        factor *= unit.factor**times
    if not words or words > 5:
        return None
    kept = tuple(sorted((base, power) for base, power in powers.items() if power))
    return Unit(kept, factor, known, offset if words <= 2 and len(kept) == 1 else Fraction(0))


def nouns(unit: Unit) -> frozenset[str]:
    return frozenset(base for base, _ in unit.dimension)
