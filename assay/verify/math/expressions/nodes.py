"""Exact expressions.

A node is a :class:`~fractions.Fraction` or a tuple headed by its kind: ``("v", name)``, ``("c", "pi" | "e" | "i")``,
``("+", nodes)``, ``("*", nodes)``, ``("^", base, exponent)``, ``("f", name, arguments)``. Constructors fold rationals,
so a rational answer is always one ``Fraction``. Sums and products are flat: depth follows brackets, not length.

Kinds are told by ``type(a) is Fraction``: ``isinstance`` asks abstract classes, ten times slower, of a tuple.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

Node = Any
"""``Fraction | tuple``; recursive types are not worth their noise here."""

MAX_BITS = 40_000
"""Size of the largest number computed exactly; beyond it an expression is evaluated in floating point only."""
ZERO, ONE, MINUS_ONE, HALF = Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2)
PI, E, I = ("c", "pi"), ("c", "e"), ("c", "i")  # noqa: E741


class Unreadable(Exception):
    """The text is not an expression this reader knows, or has no value (a division by zero)."""


def add(items: list[Node]) -> Node:
    if len(items) == 1:  # most sums and products are of one thing, and arithmetic with fractions is slow
        return items[0]
    constant, rest = ZERO, []
    for item in items:
        if type(item) is Fraction:
            constant += item
        else:
            rest.append(item)
    if not rest:
        return constant
    if constant:
        rest.append(constant)
    return rest[0] if len(rest) == 1 else ("+", tuple(rest))


def mul(items: list[Node]) -> Node:
    if len(items) == 1:
        return items[0]
    constant, rest = ONE, []
    for item in items:
        if type(item) is Fraction:
            constant = item if constant is ONE else constant * item
        elif item[0] == "*":
            for factor in item[1]:
                if type(factor) is Fraction:
                    constant = factor if constant is ONE else constant * factor
                else:
                    rest.append(factor)
        else:
            rest.append(item)
    if not rest or not constant:
        return constant
    if constant != 1:
        rest.append(constant)
    return rest[0] if len(rest) == 1 else ("*", tuple(rest))


def neg(a: Node) -> Node:
    return -a if type(a) is Fraction else mul([MINUS_ONE, a])


def inverse(a: Node) -> Node:
    if type(a) is Fraction:
        if not a:
            raise Unreadable("division by zero")
        return 1 / a
    return ("^", a, MINUS_ONE)


def div(a: Node, b: Node) -> Node:
    return mul([a, inverse(b)])


def power(base: Node, exponent: Node) -> Node:
    if type(exponent) is Fraction:
        if exponent == 1:
            return base
        if type(base) is Fraction:
            folded = _rational_power(base, exponent)
            if folded is not None:
                return folded
    return ("^", base, exponent)


def bits(a: Fraction) -> int:
    return a.numerator.bit_length() + a.denominator.bit_length()


def _rational_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if base in (0, 1):
        if base == 0 and exponent <= 0:
            if exponent == 0:
                raise Unreadable("0^0")
            raise Unreadable("division by zero")
        return base
    if exponent.denominator == 1:
        if abs(exponent) * bits(base) > MAX_BITS:
            return None
        return base**exponent.numerator
    if bits(base) > 2000 or bits(exponent) > 20:
        return None
    q, sign = exponent.denominator, 1
    if base < 0:
        if q % 2 == 0:
            return None
        base, sign = -base, -1 if exponent.numerator % 2 else 1
    top, bottom = _root(base.numerator, q), _root(base.denominator, q)
    if top is None or bottom is None:
        return None
    return _rational_power(Fraction(sign * top, bottom), Fraction(exponent.numerator))


def _root(n: int, q: int) -> int | None:
    """Return the exact ``q``-th root of ``n >= 0``, if there is one."""
    if q == 2:
        r = math.isqrt(n)
    elif n.bit_length() > 1000:
        return None
    else:
        r = round(n ** (1 / q))
    return next((k for k in (r - 1, r, r + 1) if k >= 0 and k**q == n), None)


def call(name: str, *arguments: Node) -> Node:
    """Return the node of a function, folded where its value is rational."""
    a = arguments[0]
    if name == "sqrt":
        return power(a, HALF)
    if name == "exp":
        return power(E, a)
    if all(type(x) is Fraction for x in arguments):
        if name == "abs":
            return abs(a)
        if name in ("floor", "ceil"):
            return Fraction(math.floor(a) if name == "floor" else math.ceil(a))
        if name == "factorial" and a.denominator == 1 and 0 <= a <= 2000:
            return Fraction(math.factorial(a.numerator))
        if name == "binom":
            n, k = arguments
            if n.denominator == k.denominator == 1 and 0 <= k <= n <= 5000:
                return Fraction(math.comb(n.numerator, k.numerator))
        if name in ("gcd", "lcm") and all(x.denominator == 1 and bits(x) < 2000 for x in arguments):
            return Fraction(getattr(math, name)(*(x.numerator for x in arguments)))
        if name in ("min", "max"):
            return (min if name == "min" else max)(arguments)
    if name == "binom" and type(arguments[1]) is Fraction and arguments[1].denominator == 1 and 0 <= arguments[1] <= 12:
        k = arguments[1].numerator
        return mul([Fraction(1, math.factorial(k)), *(add([a, Fraction(-j)]) for j in range(k))])
    return ("f", name, tuple(arguments))


@functools.lru_cache(4096)
def variables(node: Node) -> frozenset[str]:
    """Return the names of the free variables."""
    if type(node) is Fraction or node[0] == "c":
        return frozenset()
    if node[0] == "v":
        return frozenset((node[1],))
    children = node[1] if node[0] in "+*" else node[2] if node[0] == "f" else node[1:]
    return frozenset().union(*(variables(child) for child in children))


def mentions(node: Node, part: Node) -> bool:
    """Say whether ``part`` (a constant or variable node, or the name of a function) occurs in ``node``."""
    if type(node) is Fraction:
        return False
    if node == part or (node[0] == "f" and node[1] == part):
        return True
    if node[0] in "vc":
        return False
    children = node[1] if node[0] in "+*" else node[2] if node[0] == "f" else node[1:]
    return any(mentions(child, part) for child in children)


def substituted(node: Node, old: str, new: str) -> Node:
    """Return ``node`` with the variable ``new`` in place of ``old``."""
    if type(node) is Fraction or node[0] == "c":
        return node
    if node[0] == "v":
        return ("v", new) if node[1] == old else node
    if node[0] in "+*":
        return (node[0], tuple(substituted(child, old, new) for child in node[1]))
    if node[0] == "f":
        return ("f", node[1], tuple(substituted(child, old, new) for child in node[2]))
    return ("^", substituted(node[1], old, new), substituted(node[2], old, new))
