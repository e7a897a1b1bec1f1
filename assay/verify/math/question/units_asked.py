"""Units that a question speaks of, and whether a unit in an answer contradicts them."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from assay.verify.math.expressions.units import CURRENCY, UNITS, Unit, lookup, read_unit

_DRESS = re.compile(r"\\(?:text|mathrm|textrm|,|;|:|!| )|[${}~]")
_NAME = r"(?:(?:square|cubic|sq\.?) )?[A-Za-zµΩ°]{1,14}(?:/[A-Za-z]{1,6}|\^?[23]|[²³])?"
_COUNTED = re.compile(rf"(?<![\w.])[0-9][0-9.,]*\s?(?P<unit>{_NAME})(?![\w])")
_SPOKEN = re.compile(rf"\b(?:how many|number of|in|of|per|to|into|as)\s+(?P<unit>{_NAME})(?![\w])", re.IGNORECASE)
_COIN = re.compile(r"[$€£¥₹₽₩¢](?=\s?[0-9.])|(?<=[0-9])\s?[€£¥₹₽₩¢]")
_LETTERS = frozenset("mglshtWNJVAKC")
"""Letters that are units after a number."""
_AREA = re.compile(
    r"\b(?:what|find|calculate|compute|determine|how large|how big)\b[^.?!]{0,40}\barea\b[^.?!]*[.?!]?\s*$", re.I
)
_VOLUME = re.compile(
    r"\b(?:what|find|calculate|compute|determine|how large|how big)\b[^.?!]{0,40}\bvolume\b[^.?!]*[.?!]?\s*$", re.I
)
_COUNT = re.compile(
    r"\bhow many (?:(?:more|fewer|different|other|whole|full|total|of the|of these) )?(?P<noun>[a-z]{3,15})\b", re.I
)
_RATE = re.compile(r"\b(?:per|each|every|an? (?:second|minute|hour|day|week|month|year))\b|/", re.I)
_MONEY = frozenset(UNITS[name].dimension for name in CURRENCY.values())
_POUND, _STERLING = UNITS["pound"], UNITS["gbp"]


@functools.lru_cache(1024)
def mentioned(question: str) -> frozenset[Unit]:
    """Return the known units in a question, those of a quotient such as km/h too."""
    text = _DRESS.sub(" ", question[:4000])
    found: set[Unit] = set()
    for pattern in (_COUNTED, _SPOKEN):
        for match in pattern.finditer(text):
            name = match["unit"].strip()
            if len(name) == 1 and (pattern is _SPOKEN or name not in _LETTERS):
                continue
            _add(found, name)
            for part in re.split(r"[/ ]", name) if re.search(r"[/ ]", name) else ():
                _add(found, part.rstrip("^23²³"))
    for match in _COIN.finditer(question[:4000]):
        found.add(UNITS[CURRENCY[match.group().strip()]])
    if _STERLING in found:
        found.discard(_POUND)
    return frozenset(found)


def _add(found: set[Unit], name: str) -> None:
    unit = lookup(name) or (read_unit(name) if re.search(r"[/ ^0-9²³]", name) else None)
    if unit is not None and unit.known:
        found.add(unit)


def expected(unit: Unit, question: str) -> Fraction | None:
    """Return by which factor a value in ``unit`` is to be multiplied beside a bare reference.

    1 where the question speaks of this very unit, or of nothing that says otherwise; the factor to the one unit of the
    same kind that it speaks of; ``None`` where the unit contradicts the question.
    """
    units = mentioned(question)
    if (
        unit == _POUND
        and any(u.dimension in _MONEY for u in units)
        and not any(u.dimension == _POUND.dimension for u in units)
    ):
        unit = _STERLING  # beside prices a pound is money
    power = dict(unit.dimension)["m"] if dict(unit.dimension).keys() == {"m"} else 0
    if (power not in (0, 2) and _AREA.search(question)) or (power not in (0, 3) and _VOLUME.search(question)):
        return None
    money = unit.dimension in _MONEY
    if money and (count := _COUNT.search(question)) is not None:
        noun = lookup(count["noun"])
        if noun is None or noun.dimension not in _MONEY:
            return None
    if _of_another_kind(unit, question):
        return None
    if not units or unit in units:
        return Fraction(1)
    if unit == _POUND and _STERLING in units:
        return Fraction(1)
    alike = {u.factor for u in units if u.dimension == unit.dimension}
    if not alike:
        alike = _derived(unit, units)
    if len(alike) == 1 and not unit.offset:
        return unit.factor / next(iter(alike))
    if alike:
        return None
    if money:
        return None if any(u.dimension in _MONEY for u in units) else Fraction(1)
    return Fraction(1)


def rated(question: str) -> bool:
    """Say whether a question speaks of something per something else."""
    return _RATE.search(question[:4000]) is not None


def _of_another_kind(unit: Unit, question: str) -> bool:
    """Say whether the question asks "how many" of a unit that measures something else: centimetres, not cm²."""
    count = _COUNT.search(question)
    noun = lookup(count["noun"]) if count is not None and not rated(question) else None
    if noun is None or not noun.known or noun in (_POUND, _STERLING) or unit in (_POUND, _STERLING):
        return False
    return noun.dimension != unit.dimension and "K" not in dict(unit.dimension) and dict(noun.dimension).keys() != {"$"}


def _derived(unit: Unit, units: frozenset[Unit]) -> set[Fraction]:
    """The factor of a unit of this dimension made of those of its base units that are spoken of."""
    factor = Fraction(1)
    for base, exponent in unit.dimension:
        factors = {u.factor for u in units if u.dimension == ((base, 1),)}
        if len(factors) != 1:
            return set()
        factor *= next(iter(factors)) ** exponent
    return {factor}
