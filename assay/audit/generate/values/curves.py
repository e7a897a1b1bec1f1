"""Equations of lines and circles."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Polynomial, polynomial
from assay.audit.generate.spell import (
    nonzero,
    signed,
    tex,
)


@dataclass(frozen=True, slots=True)
class Equation:
    """``polynomial = 0`` up to a factor; made by :func:`equation`."""

    polynomial: Polynomial

    def __str__(self) -> str:
        return f"Eq({self.polynomial}, 0)"


def equation(left: Polynomial) -> Equation:
    """Return the equation with its leading coefficient made 1."""
    lead = left.terms[0][1]
    return Equation(polynomial(left.names, {p: c / lead for p, c in left.terms}))


def line(a: Fraction | int, b: Fraction | int, c: Fraction | int) -> Equation:
    """Return ``a x + b y + c = 0``."""
    return equation(polynomial("xy", {(1, 0): a, (0, 1): b, (0, 0): c}))


@family("lines", "equations of a line: slope, point or general form, multiples, sides exchanged")
def lines(rng: random.Random) -> Draw:
    p, q = nonzero(rng, -9, 9), rng.choice((1, 1, 2, 3, 4, 5))
    q //= gcd(p, q)
    m, b = Fraction(p, q), Fraction(nonzero(rng, -9, 9))
    x0 = nonzero(rng, -4, 4) * q
    y0 = m * x0 + b
    question = f"Find an equation of the line with slope ${tex(m)}$ through the point $({x0}, {y0})$."
    gold = line(m, -1, b)
    reference = f"y = {signed(m, 'x', first=True)}{signed(b)}"
    draw = Draw(question + " Any form is accepted.", reference, gold)
    draw.right("slope form", reference, reference.replace(" ", ""), form="latex")
    draw.right("slope form", f"y = {signed(m, 'x', False, True)}{signed(b, '', False)}")
    draw.right("sides exchanged", f"{signed(m, 'x', first=True)}{signed(b)} = y", form="latex")
    draw.right("intercept first", f"y = {signed(b, first=True)}{signed(m, 'x')}", form="latex")
    general = f"{signed(p, 'x', first=True)}{signed(-q, 'y')}{signed(b * q)} = 0"
    draw.right("general form", general, value=line(p, -q, b * q))
    k = rng.choice((2, 3, -1, -2))
    draw.right(
        "multiple",
        f"{signed(p * k, 'x', first=True)}{signed(-q * k, 'y')}{signed(b * q * k)} = 0",
        value=line(p * k, -q * k, b * q * k),
    )
    draw.right(
        "constant on the right", f"{signed(p, 'x', first=True)}{signed(-q, 'y')} = {-b * q}", value=line(p, -q, b * q)
    )
    slope = tex(m) if m not in (1, -1) else ("" if m == 1 else "-")
    draw.right(
        "point form",
        f"y{signed(-y0)} = {slope}(x{signed(-x0)})",
        form="latex",
        value=equation(polynomial("xy", {(0, 1): -1, (1, 0): m, (0, 0): y0 - m * x0})),
    )
    for kind, s, t in (
        ("slope's sign", -m, b),
        ("intercept's sign", m, -b),
        ("intercept off by one", m, b + 1),
        ("slope off by one", m + 1, b),
        ("slope inverted", 1 / m, b),
        ("perpendicular", -1 / m, b),
        ("swapped", b, m),
    ):
        value = line(s, -1, t)
        draw.wrong(kind, value, f"y = {signed(s, 'x', first=True)}{signed(t)}", form="latex")
        draw.wrong(kind, value, f"y = {signed(s, 'x', False, True)}{signed(t, '', False)}")
    draw.wrong(
        "general form, sign", line(p, q, b * q), f"{signed(p, 'x', first=True)}{signed(q, 'y')}{signed(b * q)} = 0"
    )
    return draw


@family("circles", "equations of a circle: centre form, expanded, multiples; radius for its square is wrong")
def circles(rng: random.Random) -> Draw:
    a, b, r = nonzero(rng, -8, 8), nonzero(rng, -8, 8), rng.randint(2, 9)

    def circle(h: int, k: int, square: int) -> Equation:
        return equation(
            polynomial("xy", {(2, 0): 1, (0, 2): 1, (1, 0): -2 * h, (0, 1): -2 * k, (0, 0): h * h + k * k - square})
        )

    def centred(h: int, k: int, square: int) -> str:
        return f"(x{signed(-h)})^2 + (y{signed(-k)})^2 = {square}"

    def expanded(h: int, k: int, square: int, factor: int = 1) -> str:
        lead = "" if factor == 1 else str(factor)
        tail = signed(-2 * h * factor, "x") + signed(-2 * k * factor, "y") + signed((h * h + k * k - square) * factor)
        return f"{lead}x^2 + {lead}y^2{tail} = 0"

    gold = circle(a, b, r * r)
    question = f"Find an equation of the circle with centre $({a}, {b})$ and radius ${r}$. Any form is accepted."
    draw = Draw(question, centred(a, b, r * r), gold)
    draw.right("centre form", centred(a, b, r * r), centred(a, b, r * r).replace(" ", ""))
    draw.right(
        "centre form, latex",
        centred(a, b, r * r).replace("^2", "^{2}"),
        f"(x{signed(-a)})^2 + (y{signed(-b)})^2 = {r}^2",
        form="latex",
    )
    draw.right("order", f"(y{signed(-b)})^2 + (x{signed(-a)})^2 = {r * r}")
    draw.right("expanded", expanded(a, b, r * r))
    draw.right("multiple", expanded(a, b, r * r, 2))
    draw.right("unicode", centred(a, b, r * r).replace("^2", "²"))
    for kind, h, k, square in (
        ("radius for its square", a, b, r),
        ("centre's sign", -a, -b, r * r),
        ("centre's sign", -a, b, r * r),
        ("coordinates swapped", b, a, r * r),
        ("radius off by one", a, b, (r + 1) ** 2),
        ("diameter", a, b, 4 * r * r),
    ):
        draw.wrong(kind, circle(h, k, square), centred(h, k, square), expanded(h, k, square))
    return draw
