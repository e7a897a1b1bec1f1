"""Answers that are to be rounded to a number of decimals."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from assay.audit.generate.base import Draw, family


def root(radicand: int) -> Decimal:
    """Return the square root to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        return Decimal(radicand).sqrt()


@family("rounded_decimals", "a square root rounded to n decimals: cut off, rounded up, or with other decimals is wrong")
def rounded_decimals(rng: random.Random) -> Draw:
    radicand = rng.randint(2, 999)
    while math.isqrt(radicand) ** 2 == radicand:
        radicand += 1
    places = rng.randint(1, 4)
    exact, unit = root(radicand), Decimal(1).scaleb(-places)
    gold = exact.quantize(unit, ROUND_HALF_UP)
    question = f"Compute $\\sqrt{{{radicand}}}$, rounded to {places} decimal place{'s' if places > 1 else ''}."
    draw = Draw(question, str(gold), Fraction(gold))
    draw.right("digits", str(gold))
    draw.right("approximately", f"≈ {gold}", f"≈{gold}")
    draw.right("latex", str(gold), rf"\approx {gold}", form="latex")
    draw.right("named", f"√{radicand} ≈ {gold}", f"sqrt({radicand}) = {gold}", form="text")
    for kind, value in (
        ("last digit", gold + unit),
        ("last digit", gold - unit),
        ("rounded the wrong way", gold + unit if gold < exact else gold - unit),
        ("first digit", gold + 1),
        ("decimal shift", gold * 10),
        ("decimal shift", gold / 10),
        ("too few decimals", exact.quantize(unit * 10, ROUND_HALF_UP)),
    ):
        draw.wrong(kind, Fraction(value), str(value), f"≈ {value}")
        draw.wrong(kind, Fraction(value), rf"\approx {value}", form="latex")
    return draw
