"""The value of an expression at a point: in floating point, with 50 digits, or exactly."""

from __future__ import annotations

import cmath
import functools
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from assay.verify.math.expressions.nodes import MAX_BITS, ONE, Node, Unreadable, bits

Number = Any
Library = Mapping[str, Any]


def evaluate(node: Node, point: Mapping[str, Number], lib: Library) -> Number:
    if type(node) is Fraction:
        return lib["number"](node)
    kind = node[0]
    if kind == "+":
        total = evaluate(node[1][0], point, lib)
        for item in node[1][1:]:
            total = total + evaluate(item, point, lib)
        return total
    if kind == "*":
        total = evaluate(node[1][0], point, lib)
        for item in node[1][1:]:
            total = total * evaluate(item, point, lib)
        return total
    if kind == "^":
        return lib["power"](evaluate(node[1], point, lib), evaluate(node[2], point, lib), node[2])
    if kind == "v":
        return point[node[1]]
    if kind == "c":
        return lib[node[1]]
    function = lib.get(node[1])
    if function is None:
        raise Unreadable(f"no value for {node[1]}")
    return function(*(evaluate(a, point, lib) for a in node[2]))


class Inexact(Exception):
    """The expression is not a rational function, or too large."""


def _exact_power(base: Fraction, exponent: Fraction, _: Node) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) * bits(base) > MAX_BITS:
        raise Inexact
    if not base and exponent <= 0:
        raise ZeroDivisionError
    return base**exponent.numerator


class _ExactLibrary(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            raise Inexact
        return self[key]

    def __missing__(self, key: str) -> Any:
        raise Inexact


# pi and e stand for themselves: an identity that holds for rational stand-ins at three points holds for them.
STAND_INS = [(Fraction(22481, 7156), Fraction(9241, 3400)), (Fraction(7, 113), Fraction(31, 57))]


def exact_library(turn: int) -> Library:
    pi, e = STAND_INS[turn]
    return _ExactLibrary(number=lambda a: a, power=_exact_power, pi=pi, e=e)


def _build(m: Any, number: Callable[[Fraction], Number], log10: bool) -> Library:
    def real(z: Number) -> float:
        if abs(z.imag) > 1e-9 * (1 + abs(z.real)):
            raise ValueError("not real")
        return z.real

    def raised(base: Number, exponent: Number, written: Node) -> Number:
        odd = type(written) is Fraction and written.denominator % 2 and written.denominator > 1
        if odd and base.imag == 0 and base.real < 0:
            # An odd root of a negative number is the real one.
            return (-((-base) ** number(Fraction(1, written.denominator)))) ** written.numerator
        if base == 0 and exponent.real <= 0:
            raise ZeroDivisionError
        if abs(exponent) > 1e15:
            raise OverflowError
        return base**exponent

    def factorial(z: Number) -> Number:
        n = real(z)
        if n < 0 or n > 100_000:
            raise ValueError("factorial")
        return number(Fraction(math.factorial(int(n)))) if n == int(n) and n <= 170 else gamma(n + 1)

    def gamma(x: float) -> Number:
        return m.gamma(x) if hasattr(m, "mpf") else math.gamma(x)

    def binom(n: Number, k: Number) -> Number:
        return factorial(n) / (factorial(k) * factorial(n - k))

    def comparable(choose: Callable[..., Any]) -> Callable[..., Number]:
        return lambda *items: number(ONE) * choose(real(z) for z in items)

    table = {name: getattr(m, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    table.update({f"a{name}": getattr(m, f"a{name}") for name in list(table)})
    table.update(
        number=number,
        power=raised,
        pi=m.pi * 1,
        e=m.e * 1,
        i=m.mpc(0, 1) if hasattr(m, "mpc") else 1j,
        ln=m.log,
        log=m.log10 if log10 else m.log,
        abs=abs,
        cot=lambda z: 1 / m.tan(z),
        sec=lambda z: 1 / m.cos(z),
        csc=lambda z: 1 / m.sin(z),
        acot=lambda z: m.atan(1 / z),
        asec=lambda z: m.acos(1 / z),
        acsc=lambda z: m.asin(1 / z),
        conj=lambda z: z.conjugate(),
        re=lambda z: z.real,
        im=lambda z: z.imag,
        floor=lambda z: number(Fraction(math.floor(real(z)))),
        ceil=lambda z: number(Fraction(math.ceil(real(z)))),
        factorial=factorial,
        binom=binom,
        min=comparable(min),
        max=comparable(max),
        sgn=lambda z: z / abs(z) if z else z,
    )
    return table


def _float_number(a: Fraction) -> complex:
    return complex(a.numerator / a.denominator)


@functools.cache
def floats(log10: bool) -> Library:
    return _build(cmath, _float_number, log10)


_LOCAL = threading.local()


def digits50(log10: bool) -> Library:
    # One context per thread: mpmath changes the working precision of its context while it computes.
    made: dict[bool, Library] | None = getattr(_LOCAL, "libraries", None)
    if made is None:
        made = _LOCAL.libraries = {}
    if log10 not in made:
        import mpmath

        context = mpmath.mp.clone()
        context.dps = 50
        made[log10] = _build(context, lambda a: context.mpc(a.numerator) / a.denominator, log10)
    return made[log10]


ARITHMETIC = (ArithmeticError, ValueError, Unreadable, TypeError, RecursionError)


@functools.lru_cache(8192)
def approximate(node: Node, log10: bool = False) -> complex | None:
    """Return the value of a constant expression in double precision, ``None`` if it has none."""
    if type(node) is Fraction:
        try:
            return complex(node.numerator / node.denominator)
        except OverflowError:
            return None
    try:
        value = complex(evaluate(node, {}, floats(log10)))
    except KeyError:
        return None
    except ARITHMETIC:
        return None
    return value if cmath.isfinite(value) else None


def precise(node: Node) -> Any:
    """Return the value of a constant expression as an mpmath number of 50 digits, ``None`` if it has none."""
    try:
        return evaluate(node, {}, digits50(False))
    except KeyError:
        return None
    except ARITHMETIC:
        return None
