"""Measured values with their uncertainty: ``(5.2 ± 0.1) cm``, ``5.2 cm +/- 0.1 cm``, ``5.2(1) cm``."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from assay.verify.math.expressions.units import Unit, read_unit
from assay.verify.math.read.latex import plain

_NUMBER = r"-?[0-9]{1,20}(?:[.,][0-9]{1,20})?"
_UNIT = r"[^\W\d_]?[^0-9±()]{0,24}?"
_SPREAD = re.compile(
    rf"\(?\s?(?P<value>{_NUMBER})\s?(?P<first>{_UNIT})\s?"
    r"(?:±|\+\s?/\s?-|\+-|,?\s?plus(?: or |[ /-])minus|,?\s?with an? (?:error|uncertainty) of|,?\s?give or take)\s?"
    rf"(?P<error>{_NUMBER})\s?(?P<second>{_UNIT})\s?(?:(?P<closed>\))\s?(?P<third>{_UNIT}))?\.?",
    re.IGNORECASE,
)
_CONCISE = re.compile(rf"(?P<value>-?[0-9]{{1,20}}\.[0-9]{{1,20}})\((?P<error>[0-9]{{1,3}})\)\s?(?P<third>{_UNIT})")
_NAME = re.compile(r"(?:[A-Za-z](?:_[A-Za-z0-9])?|[a-z]{3,12}) ?= ?")


@functools.lru_cache(1024)
def measured(text: str) -> tuple[Fraction, Fraction, Unit | None] | None:
    """Return value, uncertainty and unit of a measured value, ``None`` if ``text`` is none or its units disagree."""
    if len(text) > 120:
        return None
    said = plain(text).strip(" $*.")
    if (named := _NAME.match(said)) is not None:
        said = said[named.end() :]
    if (match := _CONCISE.fullmatch(said)) is not None:
        places = len(match["value"].partition(".")[2])
        unit = read_unit(match["third"]) if match["third"].strip() else None
        return Fraction(match["value"]), Fraction(int(match["error"]), 10**places), unit
    match = _SPREAD.fullmatch(said)
    if match is None or said.startswith("(") != (match["closed"] is not None):
        return None
    units = [read_unit(match[group]) for group in ("first", "second", "third") if (match[group] or "").strip()]
    if any(unit is None or unit != units[0] for unit in units):
        return None
    value, error = (Fraction(match[group].replace(",", ".")) for group in ("value", "error"))
    return value, error, units[0] if units else None


def same_measured(reference: str, answer: str) -> bool:
    """Say whether both texts are the same measured value; a unit may be left out by one of them."""
    left = measured(reference)
    right = measured(answer) if left is not None else None
    if left is None or right is None:
        return False
    (value, error, unit), (other, spread, its) = left, right
    if unit is None or its is None:
        return (value, error) == (other, spread)
    return unit.dimension == its.dimension and (value * unit.factor, error * unit.factor) == (
        other * its.factor,
        spread * its.factor,
    )
