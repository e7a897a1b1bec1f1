"""Complex numbers in rectangular and polar form."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Complex
from assay.audit.generate.spell import (
    nonzero,
    plain,
    tex,
)


def complex_text(re: Fraction, im: Fraction, unit: str = "i", latex: bool = False, first: str = "re") -> str:
    """Return ``3 + 4i``, with the parts in either order."""
    write = tex if latex else plain
    size = "" if abs(im) == 1 else (write(abs(im)) if abs(im).denominator == 1 or latex else f"({abs(im)})")
    imaginary = f"{size}{unit}"
    if not re:
        return ("-" if im < 0 else "") + imaginary
    if first == "im":
        return ("-" if im < 0 else "") + imaginary + (" - " if re < 0 else " + ") + write(abs(re))
    return write(re) + (" - " if im < 0 else " + ") + imaginary


@family("complex_numbers", "complex numbers: order of the parts, one fraction or two, roman i; the conjugate is wrong")
def complex_numbers(rng: random.Random) -> Draw:
    s = rng.choice((1, 1, 1, 2, 3, 5))
    a, b = rng.randint(-12, 12), nonzero(rng, -12, 12)
    re, im = Fraction(a, s), Fraction(b, s)
    c, d = rng.randint(1, 6), nonzero(rng, -6, 6)
    product = Complex(re * c - im * d, re * d + im * c)
    question = f"Find the complex number $z$ with $({complex_text(Fraction(c), Fraction(d))}) \\cdot z = "
    gold = Complex(re, im)
    if product.im:
        question += f"{complex_text(product.re, product.im, latex=True)}$."
    else:
        question += f"{tex(product.re)}$."
    reference = complex_text(re, im, latex=True)
    draw = Draw(question, reference, gold)
    draw.right("latex", reference, complex_text(re, im, r"\mathrm{i}", True), f"z = {reference}", form="latex")
    draw.right("latex", complex_text(re, im, r"\cdot i", True) if abs(im) != 1 else reference, form="latex")
    draw.right("code", complex_text(re, im), f"z = {complex_text(re, im)}", complex_text(re, im).replace(" ", ""))
    if abs(im) != 1:
        draw.right("times sign", complex_text(re, im, "*i"))
    if re:
        draw.right("imaginary first", complex_text(re, im, first="im"))
        draw.right("imaginary first", complex_text(re, im, latex=True, first="im"), form="latex")
        if re.denominator == im.denominator > 1:
            top = complex_text(re * re.denominator, im * im.denominator)
            draw.right("one fraction", rf"\frac{{{top}}}{{{re.denominator}}}", form="latex")
            draw.right("one fraction", f"({top})/{re.denominator}")
    else:
        draw.right("zero part", f"0 + {complex_text(re, im)}" if im > 0 else f"0 - {complex_text(re, -im)}")
    for kind, x, y in (
        ("conjugate", re, -im),
        ("parts swapped", im, re),
        ("negated", -re, -im),
        ("real part off by one", re + 1, im),
        ("imaginary part off by one", re, im + 1),
        ("real part's sign", -re, im),
    ):
        if y:
            draw.wrong(kind, Complex(x, y), complex_text(x, y), complex_text(x, y).replace(" ", ""))
            draw.wrong(kind, Complex(x, y), complex_text(x, y, latex=True), form="latex")
    draw.wrong("i left out", Complex(re + im, Fraction(0)), plain(re + im))
    return draw


@family("polar", "a quotient by 1-i, polar or rectangular: e, cis, degrees; conjugate, argument, modulus are wrong")
def polar(rng: random.Random) -> Draw:
    k, quadrant = rng.randint(2, 9), rng.choice((1, 3, 5, 7))  # argument quadrant * pi / 4
    u, v = {1: (1, 1), 3: (-1, 1), 5: (-1, -1), 7: (1, -1)}[quadrant]
    draw = Draw(
        f"Solve $(1 - i)\\,z = {2 * k * (u + v) // 2}{'+' if v - u >= 0 else '-'}{abs(k * (v - u))}i$. Rectangular and"
        " polar form are both fine; exact.",
        f"{k * u}{'+' if v > 0 else '-'}{k}i",
        (k * u, k * v),
        "Multiply both sides by $1 + i$ and divide by $2$.",
        form="latex",
    )

    def spell(k: int, q: int) -> tuple[list[str], list[str]]:
        u, v = {1: (1, 1), 3: (-1, 1), 5: (-1, -1), 7: (1, -1)}[q]
        m = f"{k}\\sqrt{{2}}"
        arg = "\\frac{\\pi}{4}" if q == 1 else f"\\frac{{{q}\\pi}}{{4}}"
        s = "+" if v > 0 else "-"
        flip = f"{k}i {'+' if u > 0 else '-'} {k}" if v > 0 else f"-{k}i {'+' if u > 0 else '-'} {k}"
        sign = {(1, 1): f"{k}(1+i)", (-1, 1): f"{k}(-1+i)", (-1, -1): f"-{k}(1+i)", (1, -1): f"{k}(1-i)"}[u, v]
        return (
            [
                f"{k * u} {s} {k}i",
                f"z = {k * u} {s} {k}\\mathrm{{i}}",
                flip,
                sign,
                f"{m} e^{{i {arg}}}",
                f"{m}\\, e^{{{q if q > 1 else ''}\\pi i / 4}}",
                f"{m}\\left(\\cos {arg} + i \\sin {arg}\\right)",
                f"{m}(\\cos {45 * q}^\\circ + i\\sin {45 * q}^\\circ)",
            ],
            [f"{k * u} {s} {k}i", f"z = {k * u} {s} {k}i", f"{k * u}{s}{k}*i"],
        )

    for kind, kk, q in (
        ("right", k, quadrant),
        ("conjugate", k, 8 - quadrant),
        ("negated", k, (quadrant + 4) % 8),
        ("modulus", k + 1, quadrant),
        ("modulus", 2 * k, quadrant),
    ):
        latex, plain = spell(kk, q)
        uu, vv = {1: (1, 1), 3: (-1, 1), 5: (-1, -1), 7: (1, -1)}[q]
        draw.spell(kind, (kk * uu, kk * vv), plain, latex)
    draw.wrong("modulus without root", ("polar", k, quadrant), f"{k} e^{{{quadrant}\\pi i/4}}")
    draw.wrong("only the modulus", ("number", k), f"{k}\\sqrt{{2}}")
    return draw
