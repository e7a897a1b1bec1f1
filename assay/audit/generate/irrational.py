"""Exact irrational numbers: radicals and multiples of pi."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Pi, surd
from assay.audit.generate.spell import decimal, linear_sum, nonzero, plain, tex, times

SQUARE_FREE = (2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19)


def digits_of(value: float, places: int) -> tuple[Fraction, str]:
    """Return a rounded decimal, as an exact number and as text."""
    text = f"{value:.{places}f}"
    return Fraction(text), text


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


@family("pi_multiples", "rational multiples of pi where an exact value is asked for")
def pi_multiples(rng: random.Random) -> Draw:
    radius = Fraction(rng.randint(1, 20), rng.choice((1, 1, 2, 3, 4)))
    area = rng.random() < 0.5
    k = radius**2 if area else 2 * radius
    question = f"Find the exact {'area' if area else 'circumference'} of a circle with radius ${tex(radius)}$."
    top, bottom = k.numerator, k.denominator
    head = times(top, r"\pi")
    reference = head if bottom == 1 else rf"\frac{{{head}}}{{{bottom}}}"
    draw = Draw(question, reference, Pi(k))
    draw.right("latex", reference, reference.replace(r"\frac", r"\dfrac"), form="latex")
    below = f"/{bottom}" if bottom > 1 else ""
    draw.right("unicode", f"{times(top, 'π')}{below}", f"{times(top, ' π')}{below}")
    draw.right("code", f"{times(top, 'pi', '*')}{below}")
    draw.right("word", f"{times(top, 'pi', ' ')}{below}")
    draw.right("factor behind", rf"\pi \cdot {tex(k)}", rf"{tex(k)}\cdot\pi", form="latex")
    if bottom > 1:
        draw.right(
            "fraction in front", rf"{tex(k)}\pi", rf"{tex(k)} \, \pi", rf"\left({tex(k)}\right)\pi", form="latex"
        )
        if (digits := decimal(k)) is not None:
            draw.right("decimal factor", rf"{digits}\pi", form="latex", value=Pi(Fraction(digits)))
            draw.right("decimal factor", f"{digits}π")
    below_pi = times(bottom, r"\pi")
    draw.wrong("pi left out", Pi(k, 0), plain(k))
    draw.wrong("pi below", Pi(k, -1), rf"\frac{{{top}}}{{{below_pi}}}", form="latex")
    draw.wrong("pi squared", Pi(k, 2), rf"{tex(k)}\pi^2", form="latex")
    other = 2 * radius if area else radius**2
    for kind, value in (("other formula", other), ("doubled", 2 * k), ("halved", k / 2), ("off by one", k + 1)):
        draw.wrong(kind, Pi(value), rf"{tex(value)}\pi", form="latex")
        share = f"/{value.denominator}" if value.denominator > 1 else ""
        draw.wrong(kind, Pi(value), f"{times(value.numerator, 'π')}{share}")
    for places in (1, 2):
        number, text = digits_of(float(k) * 3.141592653589793, places)
        draw.wrong("rounded", Pi(number, 0), text)
    return draw
