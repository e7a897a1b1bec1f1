"""Square roots: simplified or not, in sums, with both signs."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import surd
from assay.audit.generate.spell import (
    digits_of,
    linear_sum,
    nonzero,
    tex,
    times,
)

SQUARE_FREE = (2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19)


@family("radicals", "a root `b sqrt(c)`: simplified or not, rationalised or not, as a power, with unicode roots")
def radicals(rng: random.Random) -> Draw:
    b, c = rng.randint(1, 9), rng.choice(SQUARE_FREE)
    square = b * b * c
    gold = surd(0, b, c)
    root = times(b, rf"\sqrt{{{c}}}")
    draw = Draw(f"Find the positive solution of $x^2 = {square}$ exactly.", root, gold)
    draw.right("latex", root, times(b, rf"\sqrt{{{c}}}", r"\,"), f"x = {root}", form="latex")
    draw.right("latex", times(b, rf"\sqrt{{{c}}}", r" \cdot "), form="latex")
    if c < 10:
        draw.right("latex without braces", times(b, rf"\sqrt{c}"), times(b, rf"\sqrt {c}"), form="latex")
    draw.right("unicode", times(b, f"√{c}"), times(b, f"√({c})"), f"x = {times(b, f'√{c}')}")
    draw.right("code", times(b, f"sqrt({c})", "*"), f"x = {times(b, f'sqrt({c})', '*')}")
    draw.right("power", times(b, f"({c})^(1/2)", "*"), times(b, f"{c}**0.5", "*"))
    draw.right("power", times(b, rf"{c}^{{1/2}}", r" \cdot "), rf"{square}^{{\frac{{1}}{{2}}}}", form="latex")
    draw.right("not simplified", rf"\sqrt{{{square}}}", form="latex", value=surd(0, 1, square))
    draw.right("not simplified", f"√{square}", f"sqrt({square})", value=surd(0, 1, square))
    draw.right("rationalised", rf"\frac{{{b * c}}}{{\sqrt{{{c}}}}}", form="latex", value=surd(0, Fraction(b * c, c), c))
    draw.right("rationalised", f"{b * c}/sqrt({c})", f"{b * c}/√{c}")
    draw.wrong("sign flipped", surd(0, -b, c), f"-{root}", form="latex")
    draw.wrong("both signs", (surd(0, -b, c), gold), rf"\pm {root}", form="latex")
    for kind, value, f, r in (
        ("factor under the root", surd(0, 1, b * c), 1, b * c),
        ("factor off by one", surd(0, b + 1, c), b + 1, c),
        ("radicand off by one", surd(0, b, c + 1), b, c + 1),
        ("swapped", surd(0, c, b), c, b),
        ("square left in front", surd(0, b * b, c), b * b, c),
    ):
        draw.wrong(kind, value, times(f, f"√{r}"), times(f, f"sqrt({r})", "*"))
        draw.wrong(kind, value, times(f, rf"\sqrt{{{r}}}"), form="latex")
    draw.wrong("root dropped", surd(square, 0, 1), str(square))
    for places in (1, 2, 4):
        cut, text = digits_of(b * c**0.5, places)
        draw.wrong("rounded", surd(cut, 0, 1), text, f"x = {text}")
    return draw


@family("radical_sums", "`(p + q sqrt(r)) / s`: order, one fraction or two, code, unicode; conjugates are wrong")
def radical_sums(rng: random.Random) -> Draw:
    p, q, r, s = nonzero(rng, -9, 9), rng.randint(1, 5), rng.choice(SQUARE_FREE), rng.randint(1, 6)
    while gcd(gcd(p, q), s) > 1:
        s -= 1
    gold = surd(Fraction(p, s), Fraction(q, s), r)
    last = p * p - q * q * r
    middle = f"{-2 * p * s:+d}x"
    question = f"Find the larger root of ${s * s if s > 1 else ''}x^2 {middle} {last:+d} = 0$ exactly."
    root, line = times(q, rf"\sqrt{{{r}}}"), times(q, f"sqrt({r})", "*")
    over = (lambda t: rf"\frac{{{t}}}{{{s}}}") if s > 1 else (lambda t: t)
    reference = over(f"{p}+{root}")
    draw = Draw(question, reference, gold)
    draw.right("latex", over(f"{p} + {root}"), over(f"{root} {p:+d}"), rf"x = {over(f'{p} + {root}')}", form="latex")
    below = f"/{s}" if s > 1 else ""
    draw.right("code", f"({p} + {line}){below}", f"({line} {p:+d}){below}", f"x = ({p} + {line}){below}")
    draw.right("unicode", f"({p} + {times(q, f'√{r}')}){below}")
    draw.right("under the root", over(rf"{p} + \sqrt{{{q * q * r}}}"), form="latex")
    draw.right("doubled", rf"\frac{{{2 * p} + \sqrt{{{4 * q * q * r}}}}}{{{2 * s}}}", form="latex")
    draw.right("sign outside", over(rf"-\left({-p} - {root}\right)"), form="latex")
    if s > 1:
        split = rf"{tex(Fraction(p, s))} + \frac{{{root}}}{{{s}}}"
        draw.right("two fractions", split, form="latex", value=surd(Fraction(p, s), Fraction(q, s), r))
        draw.right("factor in front", rf"\frac{{1}}{{{s}}}\left({p} + {root}\right)", form="latex")
        draw.wrong("only the root divided", surd(p, Fraction(q, s), r), rf"{p} + \frac{{{root}}}{{{s}}}", form="latex")
        draw.wrong("not divided", surd(p, q, r), f"{p} + {line}")
    for kind, a, b, c in (
        ("conjugate", p, -q, r),
        ("first sign flipped", -p, q, r),
        ("first off by one", p + 1, q, r),
        ("factor off by one", p, q + 1, r),
        ("radicand off by one", p, q, r + 1),
    ):
        value = surd(Fraction(a, s), Fraction(b, s), c)
        draw.wrong(kind, value, over(linear_sum([str(a), times(b, rf"\sqrt{{{c}}}")])), form="latex")
        draw.wrong(kind, value, f"({linear_sum([str(a), times(b, f'sqrt({c})', '*')])}){below}")
    number, text = digits_of((p + q * r**0.5) / s, 3)
    draw.wrong("rounded", surd(number, 0, 1), text)
    return draw


@family(
    "simplest_radical", "a root asked for in simplest radical form: an equal root that is not, or a decimal, is wrong"
)
def simplest_radical(rng: random.Random) -> Draw:
    r, k = rng.choice((2, 3, 5, 6, 7, 10, 11)), rng.choice((4, 6, 8, 9, 10, 12))
    n = k * k * r
    inner = rng.choice([d for d in range(2, k) if k % d == 0])
    draw = Draw(
        f"Write $\\sqrt{{{n}}}$ in simplest radical form: an integer times the root of an integer that no square "
        "greater than 1 divides. A decimal, or a root that can be simplified further, is not accepted.",
        f"{k}\\sqrt{{{r}}}",
        ("form", k, r),
        f"We look for the largest square that divides ${n}$.",
        form="latex",
    )
    draw.right(
        "latex",
        f"{k}\\sqrt{{{r}}}",
        f"{k}\\,\\sqrt{{{r}}}",
        f"{k} \\cdot \\sqrt{{{r}}}",
        f"\\sqrt{{{n}}} = {k}\\sqrt{{{r}}}",
    )
    draw.right("plain", f"{k}√{r}", f"{k}*sqrt({r})", f"{k}√({r})", form="plain")
    draw.right("words", f"{k} times the square root of {r}", form="text")
    draw.wrong("unchanged", ("form", 1, n), f"\\sqrt{{{n}}}")
    draw.wrong("half way", ("form", k // inner, inner * inner * r), f"{k // inner}\\sqrt{{{inner * inner * r}}}")
    draw.wrong("exchanged", ("form", r, k), f"{r}\\sqrt{{{k}}}")
    draw.wrong("factor", ("form", k + 1, r), f"{k + 1}\\sqrt{{{r}}}")
    draw.wrong("square outside", ("form", k * k, r), f"{k * k}\\sqrt{{{r}}}")
    draw.wrong("decimal", ("decimal", n), f"{math.sqrt(n):.3f}", form="plain")
    return draw


@family("plus_minus_roots", "x^2 = c: plus-minus, both roots by `or`, sets, code; one root, the wrong root are wrong")
def plus_minus_roots(rng: random.Random) -> Draw:
    k, r = rng.randint(2, 7), rng.choice((2, 3, 5, 6, 7, 10))
    c = k * k * r
    draw = Draw(
        f"Solve $x^2 = {c}$ over the real numbers. Exact form, please.",
        f"\\pm {k}\\sqrt{{{r}}}",
        (k * k * r, "both"),
        f"Note that ${c} = {k * k} \\cdot {r}$.",
        form="latex",
    )

    def spell(k: int, r: int) -> tuple[list[str], list[str]]:
        s = f"{k}\\sqrt{{{r}}}"
        return (
            [
                f"\\pm {s}",
                f"x = \\pm {s}",
                f"x = {s} \\text{{ or }} x = -{s}",
                f"\\{{-{s}, {s}\\}}",
                f"x_{{1,2}} = \\pm {s}",
                f"x \\in \\left\\{{ {s}, -{s} \\right\\}}",
                f"x_1 = -{s},\\; x_2 = {s}",
            ],
            [f"±{k}√{r}", f"x = ±{k}√{r}", f"x = {k}*sqrt({r}) or x = -{k}*sqrt({r})", f"{k}√{r}, -{k}√{r}"],
        )

    draw.right("not simplified", f"x = \\pm\\sqrt{{{c}}}", f"\\{{\\sqrt{{{c}}}, -\\sqrt{{{c}}}\\}}")
    for kind, p, q in (
        ("right", k, r),
        ("factor", k + 1, r),
        ("exchanged", r, k),
        ("radicand", k, r + 1),
        ("squared factor", k * k, r),
    ):
        latex, plain = spell(p, q)
        draw.spell(kind, (p * p * q, "both"), plain, latex)
    s = f"{k}\\sqrt{{{r}}}"
    draw.wrong("positive only", (c, "+"), s, f"x = {s}", f"x = \\sqrt{{{c}}}")
    draw.wrong("negative only", (c, "-"), f"x = -{s}")
    draw.wrong("positive only", (c, "+"), f"{k}√{r}", form="plain")
    draw.wrong("imaginary", (-c, "both"), f"x = \\pm {s}\\,i", f"\\pm {s} i")
    draw.wrong("zero as well", (c, "three"), f"\\{{-{s}, 0, {s}\\}}")
    return draw
