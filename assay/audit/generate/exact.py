"""The exact objects that answers stand for, and how they are shown in a case's ``meta``, readable by SymPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Surd:
    """``a + b sqrt(c)`` with ``c`` free of squares; made by :func:`surd`."""

    a: Fraction
    b: Fraction
    c: int

    def __str__(self) -> str:
        return f"{self.a} + ({self.b})*sqrt({self.c})"


def surd(a: Fraction | int, b: Fraction | int, c: int) -> Surd:
    """Return ``a + b sqrt(c)``, ``c >= 0``, in its only form."""
    a, b = Fraction(a), Fraction(b)
    for d in range(math.isqrt(c), 1, -1):
        if c % (d * d) == 0:
            b, c = b * d, c // (d * d)
            break
    if c <= 1:
        return Surd(a + b * c, Fraction(0), 1)
    return Surd(a, b, c if b else 1)


@dataclass(frozen=True, slots=True)
class Pi:
    """``coefficient * pi ** power``."""

    coefficient: Fraction
    power: int = 1

    def __str__(self) -> str:
        return f"({self.coefficient})*pi**({self.power})"


@dataclass(frozen=True, slots=True)
class Quantity:
    """``amount`` base units of ``dimension``."""

    amount: Fraction
    dimension: str

    def __str__(self) -> str:
        return f"{self.amount} {self.dimension}"


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high`` (``None``: unbounded), each end closed or open."""

    low: Fraction | None
    high: Fraction | None
    low_closed: bool = False
    high_closed: bool = False

    def __str__(self) -> str:
        low = "-oo" if self.low is None else str(self.low)
        high = "oo" if self.high is None else str(self.high)
        return f"Interval({low}, {high}, {not self.low_closed}, {not self.high_closed})"


@dataclass(frozen=True, slots=True)
class Complex:
    """``re + im i``."""

    re: Fraction
    im: Fraction

    def __str__(self) -> str:
        return f"{self.re} + ({self.im})*I"


Terms = tuple[tuple[tuple[int, ...], Fraction], ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Sum of coefficient times monomial; exponents follow ``names``; made by :func:`polynomial`."""

    names: str
    terms: Terms

    def __str__(self) -> str:
        shown = [
            "*".join([f"({c})", *(f"{n}**{e}" for n, e in zip(self.names, powers, strict=True) if e)])
            for powers, c in self.terms
        ]
        return " + ".join(shown) or "0"

    def __mul__(self, other: Polynomial) -> Polynomial:
        product: dict[tuple[int, ...], Fraction] = {}
        for p, c in self.terms:
            for q, d in other.terms:
                key = tuple(i + j for i, j in zip(p, q, strict=True))
                product[key] = product.get(key, Fraction(0)) + c * d
        return polynomial(self.names, product)

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for q, d in other.terms:
            total[q] = total.get(q, Fraction(0)) + d
        return polynomial(self.names, total)


def polynomial(names: str, terms: dict[tuple[int, ...], Any]) -> Polynomial:
    """Return the polynomial in ``names`` (one letter each) with these coefficients, in its only form."""
    kept = {p: Fraction(c) for p, c in terms.items() if c}
    return Polynomial(names, tuple(sorted(kept.items(), reverse=True)))


def show(value: Any) -> str:
    """Return ``value`` as text: SymPy's language for mathematics, quotes around words."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(show, value))) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ("," if len(value) == 1 else "") + ")"
    return str(value)
