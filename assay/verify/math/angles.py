"""General solutions of trigonometric equations: which angles a family such as ``±π/3 + 2kπ`` holds."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from assay.verify.math.congruence import without_parameter
from assay.verify.math.evaluate import evaluate, floats
from assay.verify.math.latex import plain
from assay.verify.math.nodes import Node, Unreadable, variables
from assay.verify.math.read import read
from assay.verify.math.values import Items, Named, Scalar, Value

_LETTERS = frozenset("knmlj")
_INTEGERS = re.compile(r"\s?[,;]?\s?\(?(?:where |with |for (?:any |all |some )?)?[knmlj]\s?∈\s?[ℤZ]\)?[\s.$]*$")
MAX_TURNS = 48
"""Twelfths and the like of a turn that are told apart, at most."""

Angles = tuple[Fraction, frozenset[Fraction]]
"""A period and the angles within it, both in multiples of π."""


def angles(text: str) -> Angles | None:
    """Return the angles that a general solution holds, ``None`` if ``text`` is none with one letter for any integer."""
    if len(text) > 300 or ("π" not in text and "pi" not in text):
        return None
    said = _INTEGERS.sub("", plain(text))
    said = without_parameter(said) or said
    for value in read(said):
        found = _families(value)
        if found:
            return _joined(found)
    return None


def _families(value: Value) -> list[Angles]:
    found: list[Angles] = []
    names: set[str] = set()
    for item in value.items if isinstance(value, Items) else (value,):
        scalar = item.value if isinstance(item, Named) else item
        if not isinstance(scalar, Scalar) or scalar.unit is not None:
            return []
        letters = variables(scalar.node)
        if len(letters) != 1 or not letters <= _LETTERS:
            return []
        if isinstance(item, Named):
            names.add(item.name)
        family = _family(scalar.node, next(iter(letters)))
        if family is None:
            return []
        found += family
    return found if len(names) < 2 else []


def _family(node: Node, letter: str) -> list[Angles] | None:
    """The angles of an expression linear in an integer of either parity: ``(-1)^k π/4 + kπ`` is two families."""
    values = []
    for k in range(6):
        try:
            value = complex(evaluate(node, {letter: complex(k)}, floats(False))) / math.pi
        except (Unreadable, ArithmeticError, ValueError, TypeError, KeyError):
            return None
        exact = Fraction(value.real).limit_denominator(MAX_TURNS)
        if abs(value.imag) > 1e-9 or abs(value.real - float(exact)) > 1e-9:
            return None
        values.append(exact)
    even, odd = values[2] - values[0], values[3] - values[1]
    if not even or even != odd or values[4] - values[2] != even or values[5] - values[3] != odd:
        return None
    period = abs(even)
    return [(period, frozenset([values[0] % period])), (period, frozenset([values[1] % period]))]


def _joined(families: list[Angles]) -> Angles | None:
    period = Fraction(1, math.lcm(*(f.denominator for f, _ in families)))
    period *= math.lcm(*(int(f / period) for f, _ in families))
    if period > MAX_TURNS:
        return None
    return period, frozenset(
        angle + n * own for own, held in families for angle in held for n in range(int(period / own))
    )


def same_angles(reference: str, answer: str) -> bool:
    """Say whether two general solutions hold the same angles."""
    left = angles(reference)
    right = None if left is None else angles(answer)
    if left is None or right is None:
        return False
    turns = math.lcm(left[0].numerator * right[0].denominator, right[0].numerator * left[0].denominator)
    period = Fraction(turns, left[0].denominator * right[0].denominator)
    return all(int(period / own) <= 4 * MAX_TURNS for own, _ in (left, right)) and _spread(left, period) == _spread(
        right, period
    )


def _spread(angles: Angles, period: Fraction) -> frozenset[Fraction]:
    own, held = angles
    return frozenset(angle + n * own for angle in held for n in range(int(period / own)))
