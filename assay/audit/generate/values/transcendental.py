"""Multiples of pi, sines and cosines, logarithms, powers of e."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Pi, surd
from assay.audit.generate.spell import (
    decimal,
    digits_of,
    english,
    plain,
    tex,
    times,
)


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


TRIG = {  # degrees: (sin squared, sign), (cos squared, sign)
    30: ((1, 4, 1), (3, 4, 1)), 45: ((1, 2, 1), (1, 2, 1)), 60: ((3, 4, 1), (1, 4, 1)),
    120: ((3, 4, 1), (1, 4, -1)), 135: ((1, 2, 1), (1, 2, -1)), 150: ((1, 4, 1), (3, 4, -1)),
    210: ((1, 4, -1), (3, 4, -1)), 240: ((3, 4, -1), (1, 4, -1)), 300: ((3, 4, -1), (1, 4, 1)),
    315: ((1, 2, -1), (1, 2, 1)),
}  # fmt: skip


@family(
    "trig_values", "sine and cosine of the usual angles: roots in any place; decimals, sign and cofunction are wrong"
)
def trig_values(rng: random.Random) -> Draw:
    d = rng.choice(list(TRIG))
    i = rng.randint(0, 1)
    p, q, sign = TRIG[d][i]
    root = p * 4 // q  # value is sign * sqrt(root) / 2
    gold = surd(0, Fraction(sign, 2), root)
    m = "-" if sign < 0 else ""
    draw = Draw(
        f"Find the exact value of $\\{('sin', 'cos')[i]} {d}^\\circ$.",
        "",
        gold,
        f"The reference angle is ${min(d % 180, 180 - d % 180)}^\\circ$; the quadrant settles the sign.",
        form="latex",
    )
    if root == 1:
        draw.reference = f"{m}\\frac{{1}}{{2}}"
        draw.right("half", f"{m}\\frac{{1}}{{2}}", f"{m}\\tfrac12", f"{m}\\sqrt{{\\frac{{1}}{{4}}}}", f"{m}2^{{-1}}")
        draw.right("half plain", f"{m}1/2", f"{m}0.5", f"{m}½", form="plain")
    else:
        draw.reference = f"{m}\\frac{{\\sqrt{{{root}}}}}{{2}}"
        draw.right(
            "usual", f"{m}\\frac{{\\sqrt{{{root}}}}}{{2}}", f"{m}\\dfrac{{\\sqrt{root}}}{{2}}", f"{m}\\sqrt{{{root}}}/2"
        )
        draw.right(
            "front",
            f"{m}\\frac{{1}}{{2}}\\sqrt{{{root}}}",
            f"{m}0.5\\sqrt{{{root}}}",
            f"{m}\\tfrac12 \\cdot \\sqrt{{{root}}}",
        )
        draw.right("inside", f"{m}\\sqrt{{\\frac{{{p}}}{{{q}}}}}", f"{m}\\sqrt{{{p / q}}}")
        draw.right("not rationalised", f"{m}\\frac{{{root}}}{{2\\sqrt{{{root}}}}}")
        draw.right("plain", f"{m}√{root}/2", f"{m}sqrt({root})/2", f"{m}(√{root})/2", form="plain")
        x = sign * math.sqrt(root) / 2
        draw.wrong("decimal", ("decimal", x), f"{x:.3f}", f"{x:.2f}", form="plain")
        draw.wrong("root of all", ("sqrt", root, 2), f"\\sqrt{{{root}/2}}" if root != 2 else "1")
        draw.wrong("not halved", surd(0, sign, root), f"{m}\\sqrt{{{root}}}")
    other = TRIG[d][1 - i]
    o = other[0] * 4 // other[1]
    for kind, s, r in (
        ("sign", -sign, root),
        ("cofunction", other[2], o),
        ("wrong root", sign, {1: 2, 2: 3, 3: 1}[root]),
    ):
        value = surd(0, Fraction(s, 2), r)
        w = "-" if s < 0 else ""
        draw.wrong(kind, value, f"{w}\\frac{{\\sqrt{{{r}}}}}{{2}}" if r > 1 else f"{w}\\frac{{1}}{{2}}")
        draw.wrong(kind, value, f"{w}√{r}/2" if r > 1 else f"{w}1/2", form="plain")
    return draw


@family("log_values", "logarithms that are fractions: LaTeX, mixed, solved for x; reciprocal and rounding are wrong")
def log_values(rng: random.Random) -> Draw:
    base = rng.choice((2, 3, 5, 10))
    a = rng.randint(2, 4)
    b = rng.choice([k for k in range(2, 8) if k % a and base**k < 10**6])
    q = Fraction(b, a)
    draw = Draw(
        f"Find the exact value of $\\log_{{{base**a}}} {base**b}$.",
        tex(q),
        q,
        f"Both numbers are powers of ${base}$: ${base}^{{{a}}}$ and ${base}^{{{b}}}$.",
        form="latex",
    )
    draw.right("fraction", tex(q), tex(q, "dfrac"), f"x = {tex(q)}", f"\\log_{{{base**a}}} {base**b} = {tex(q)}")
    draw.right("slash", plain(q), form="plain")
    draw.right(
        "words",
        (
            f"{english(q.numerator)}"
            f" {('', '', 'half', 'third', 'quarter')[q.denominator]}{'s' if q.numerator > 1 else ''}"
            if q.denominator > 2
            else f"{q.numerator}/2"
        ),
        form="text",
    )
    if q > 1:
        draw.right("mixed", f"{q.numerator // q.denominator}\\frac{{{q.numerator % q.denominator}}}{{{q.denominator}}}")
    if q.denominator in (2, 4):
        draw.right("decimal", str(float(q)), form="plain")
    else:
        draw.wrong(
            "rounded",
            Fraction(round(float(q), 2)).limit_denominator(100),
            f"{float(q):.2f}",
            f"{float(q):.1f}",
            form="plain",
        )
    for kind, v in (
        ("reciprocal", 1 / q),
        ("difference", Fraction(b - a)),
        ("exponent only", Fraction(b)),
        ("sign", -q),
        ("product", Fraction(a * b)),
        ("off", q + 1),
        ("quotient of numbers", Fraction(base**b, base**a)),
    ):
        draw.wrong(kind, v, tex(v), f"x = {tex(v)}")
        draw.wrong(kind, v, plain(v), form="plain")
    return draw


@dataclass(frozen=True, slots=True)
class Log:
    """The natural logarithm of a positive rational."""

    argument: Fraction

    def __str__(self) -> str:
        return f"log({self.argument})"


@family("logarithms", "exact logarithms: sums, factors in front, reciprocals, `log` with a base")
def logarithms(rng: random.Random) -> Draw:
    b, k = rng.choice((2, 3, 5, 6, 7, 10)), rng.randint(2, 4)
    other = rng.choice([n for n in (2, 3, 5, 7) if n != b])
    gold = Log(Fraction(b**k))
    question = f"Find the exact solution of $e^x = {b**k}$."
    draw = Draw(question, rf"\ln {b**k}", gold)
    draw.right(
        "one logarithm", rf"\ln {b**k}", rf"\ln({b**k})", rf"\ln\left({b**k}\right)", rf"x = \ln {b**k}", form="latex"
    )
    draw.right("one logarithm", f"ln({b**k})", f"ln {b**k}", f"x = ln({b**k})")
    draw.right(
        "factor in front",
        rf"{k}\ln {b}",
        rf"{k} \ln({b})",
        rf"{k} \cdot \ln {b}",
        form="latex",
        value=Log(Fraction(b) ** k),
    )
    draw.right("factor in front", f"{k} ln({b})", f"{k}*ln({b})", f"{k}ln({b})")
    draw.right("sum", rf"\ln {b ** (k - 1)} + \ln {b}", form="latex", value=Log(Fraction(b ** (k - 1)) * b))
    draw.right(
        "difference", rf"\ln {b**k * other} - \ln {other}", form="latex", value=Log(Fraction(b**k * other, other))
    )
    draw.right("reciprocal", rf"-\ln \frac{{1}}{{{b**k}}}", rf"-\ln\left(\frac{{1}}{{{b**k}}}\right)", form="latex")
    draw.right("base e", rf"\log_e {b**k}", rf"\log_{{e}}({b**k})", form="latex")
    for kind, argument, text in (
        ("factor off by one", Fraction(b) ** (k + 1), rf"{k + 1}\ln {b}"),
        ("argument off by one", Fraction(b**k + 1), rf"\ln {b**k + 1}"),
        ("negative", Fraction(1, b**k), rf"-\ln {b**k}"),
        ("factor moved inside", Fraction(k * b), rf"\ln {k * b}"),
        ("logarithm of a sum", Fraction(b ** (k - 1) + b), rf"\ln({b ** (k - 1)} + {b})"),
    ):
        draw.wrong(kind, Log(argument), text, form="latex")
    draw.wrong("no logarithm", ("number", b**k), str(b**k))
    draw.wrong("exponential", ("exp", b**k), rf"e^{{{b**k}}}", form="latex")
    draw.wrong("power of the logarithm", ("power", b, k), rf"(\ln {b})^{k}", form="latex")
    value = f"{math.log(b**k):.2f}"
    draw.wrong("rounded", ("number", value), value)
    draw.wrong("base ten", ("log10", b**k), rf"\log_{{10}} {b**k}", form="latex")
    return draw


@family(
    "with_e", "integrals of e^x: roman e, exp, unicode powers, factored; decimals, the order, a lost term are wrong"
)
def with_e(rng: random.Random) -> Draw:
    a, k = rng.randint(2, 5), rng.randint(2, 9)
    draw = Draw(
        f"Evaluate $\\int_0^{{{a}}} {k} e^x \\, dx$ exactly.",
        f"{k}e^{{{a}}} - {k}",
        ("e", k, a),
        f"An antiderivative is ${k}e^x$; insert both limits.",
        form="latex",
    )
    draw.right(
        "difference", f"{k}e^{{{a}}} - {k}", f"{k}e^{a}-{k}", f"{k}\\mathrm{{e}}^{{{a}}} - {k}", f"-{k} + {k}e^{a}"
    )
    draw.right(
        "factored",
        f"{k}(e^{{{a}}} - 1)",
        f"{k}\\left(e^{{{a}}}-1\\right)",
        f"(e^{a} - 1) \\cdot {k}",
        f"-{k}(1 - e^{{{a}}})",
    )
    draw.right("exp", f"{k}\\exp({a}) - {k}", f"{k}(\\exp({a}) - 1)")
    draw.right(
        "plain", f"{k}e^{a} - {k}", f"{k}e{'⁰¹²³⁴⁵'[a]} − {k}", f"{k}*exp({a}) - {k}", f"{k}(e^{a} - 1)", form="plain"
    )
    for kind, text in (
        ("lower limit lost", f"{k}e^{{{a}}}"),
        ("one", f"{k}e^{{{a}}} - 1"),
        ("plus", f"{k}e^{{{a}}} + {k}"),
        ("turned", f"{k} - {k}e^{{{a}}}"),
        ("power", f"{k}e^{{{a + 1}}} - {k}"),
        ("bracket", f"{k}(e - 1)^{{{a}}}"),
        ("factor lost", f"e^{{{a}}} - 1"),
        ("factor", f"{k + 1}(e^{{{a}}} - 1)"),
        ("base", f"{k} \\cdot {a}e - {k}"),
    ):
        draw.wrong(kind, ("text", text), text)
    x = k * math.exp(a) - k
    draw.wrong("decimal", ("decimal", x), f"{x:.2f}", f"{x:.1f}", form="plain")
    return draw
