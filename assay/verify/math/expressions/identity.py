"""When two expressions are equal.

They are evaluated at points fixed by the names of the variables (Schwartz, Zippel): first in floating point, where a
difference is final; then exactly where both are rational functions, else with 50 digits. Two different expressions that
pass would have to agree to 40 digits at points that have nothing to do with them.
"""

from __future__ import annotations

import cmath
import functools
import zlib
from fractions import Fraction
from typing import Any

from assay.verify.math.expressions.evaluate import (
    ARITHMETIC,
    STAND_INS,
    Inexact,
    digits50,
    evaluate,
    exact_library,
    floats,
)
from assay.verify.math.expressions.nodes import Node, mentions, mul, variables

TURNS = 4


@functools.lru_cache(4096)
def _coordinate(name: str, turn: int) -> Fraction:
    """A rational in (0.3, 2.3), negated in turn 1, larger in turn 3."""
    seed = zlib.crc32(f"{name}/{turn}".encode("utf-8", "surrogatepass"))
    value = Fraction(seed % 100_003, 50_001) + Fraction(3, 10)
    return -value if turn == 1 else value * 7 if turn == 3 else value


class _Samples:
    """The values of an expression at the points of all turns, each computed when it is first asked for."""

    __slots__ = ("log10", "names", "node", "turns", "values")

    def __init__(self, node: Node, names: tuple[str, ...], log10: bool):
        self.node, self.names, self.log10 = node, names, log10
        self.turns = range(TURNS if names else 1)
        self.values: dict[int, complex | None] = {}

    def __getitem__(self, turn: int) -> complex | None:
        if turn not in self.values:
            point = {name: complex(float(_coordinate(name, turn))) for name in self.names}
            try:
                value = complex(evaluate(self.node, point, floats(self.log10)))
                self.values[turn] = value if cmath.isfinite(value) else None
            except ARITHMETIC:
                self.values[turn] = None
        return self.values[turn]


@functools.lru_cache(16384)
def _samples(node: Node, names: tuple[str, ...], log10: bool) -> _Samples:
    return _Samples(node, names, log10)


def _close(a: complex, b: complex, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-30)


def equal(left: Node, right: Node) -> bool:
    """Say whether two expressions are equal wherever ``left`` (the reference) is defined and real.

    A reference that is real nowhere is compared over the complex numbers. ``log`` without a base is natural on both
    sides or decimal on both sides.
    """
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    if left == right:
        return True
    logs = (False, True) if mentions(left, "log") or mentions(right, "log") else (False,)
    return any(_equal(left, right, log10) for log10 in logs)


def _equal(left: Node, right: Node, log10: bool) -> bool:
    names = tuple(sorted(variables(left) | variables(right)))
    turns = _agreeing(_samples(left, names, log10), _samples(right, names, log10))
    if turns is None:
        return False
    exact = _exactly(left, right, names)
    if exact is None:
        exact = _modulo_primes(left, right, names)
    if exact is not None:
        return exact
    lib = digits50(log10)
    turns = turns or ([0] if not names else [0, 2])
    for turn in turns[:2]:
        point = {name: lib["number"](_coordinate(name, turn)) for name in names}
        try:
            a, b = evaluate(left, point, lib), evaluate(right, point, lib)
            if not abs(a - b) <= 1e-40 * max(abs(a), abs(b), 1):
                return False
        except ARITHMETIC:
            return False
    return True


def _agreeing(left: _Samples, right: _Samples) -> list[int] | None:
    """Return the turns at which two samples agree, ``None`` if they differ where they have to agree."""
    if _is_real(left[0]) and _differ(left[0], right[0]):
        return None  # most that differ do so at once
    real = [turn for turn in left.turns if _is_real(left[turn])]
    defined = real or [turn for turn in left.turns if left[turn] is not None]
    return None if any(_differ(left[turn], right[turn]) for turn in defined) else defined


def _is_real(a: complex | None) -> bool:
    return a is not None and abs(a.imag) <= 1e-9 * (abs(a) + 1e-9)


def _differ(a: complex | None, b: complex | None) -> bool:
    if a is None or b is None:
        return True
    if _close(a, b, 1e-4 if abs(a) < 1e12 else 1e-2):
        return False
    # Values next to zero are left to exact arithmetic: floating point cannot tell cancellation from difference.
    return not (abs(a) < 1e-9 and abs(b) < 1e-9)


def _exactly(left: Node, right: Node, names: tuple[str, ...]) -> bool | None:
    """Compare as rational functions over the rationals, pi and e; ``None`` if they are none."""
    compared = 0
    for turn in range(len(STAND_INS)):
        point = {name: _coordinate(name, turn + 10) for name in names}
        try:
            if evaluate(left, point, exact_library(turn)) != evaluate(right, point, exact_library(turn)):
                return False
        except ZeroDivisionError:
            continue
        except Inexact:
            return None
        compared += 1
    return True if compared else None


class _Residue:
    """A number modulo a prime."""

    __slots__ = ("prime", "value")

    def __init__(self, value: int, prime: int):
        self.value, self.prime = value % prime, prime

    def __add__(self, other: _Residue) -> _Residue:
        return _Residue(self.value + other.value, self.prime)

    def __mul__(self, other: _Residue) -> _Residue:
        return _Residue(self.value * other.value, self.prime)


class _ResidueLibrary(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            raise Inexact
        return self[key]

    def __missing__(self, key: str) -> Any:
        raise Inexact


def _modulo_primes(left: Node, right: Node, names: tuple[str, ...]) -> bool | None:
    """Compare rational functions whose powers are too large to compute by their residues; ``None`` if they are none.

    50 digits cannot tell 6^90000 from 6^90000 + 1.
    """
    for prime in (2**89 - 1, 2**107 - 1):

        def number(a: Fraction, prime: int = prime) -> _Residue:
            return _Residue(a.numerator * pow(a.denominator, -1, prime), prime)

        def power(base: _Residue, _: Any, exponent: Node, prime: int = prime) -> _Residue:
            if not isinstance(exponent, Fraction) or exponent.denominator != 1:
                raise Inexact
            return _Residue(pow(base.value, exponent.numerator, prime), prime)

        pi, e = STAND_INS[0]
        library = _ResidueLibrary(number=number, power=power, pi=number(pi), e=number(e))
        point = {name: number(_coordinate(name, 10)) for name in names}
        try:
            if evaluate(left, point, library).value != evaluate(right, point, library).value:
                return False
        except (Inexact, ValueError):  # no rational function, or a division by zero
            return None
    return True


def ratio(left: Node, right: Node) -> float | None:
    """Return c where ``left = c * right`` for a constant c other than 0 at every point, ``None`` if there is none."""
    names = tuple(sorted(variables(left) | variables(right)))
    quotients = []
    ours, theirs = _samples(left, names, False), _samples(right, names, False)
    for turn in ours.turns:
        a, b = ours[turn], theirs[turn]
        if a is None or b is None or abs(a.imag) > 1e-9 or abs(b.imag) > 1e-9:
            continue
        if abs(b) < 1e-12 or abs(a) < 1e-12:
            return None
        quotients.append(a.real / b.real)
    if not quotients or (names and len(quotients) < 2):
        return None
    c = quotients[0]
    if not all(_close(c, q, 1e-9) for q in quotients):
        return None
    scale = Fraction(c).limit_denominator(10_000)
    if _close(float(scale), c, 1e-9):
        return c if equal(left, mul([scale, right])) else None
    return c
