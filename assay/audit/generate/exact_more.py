"""Exact values: nested fractions, sums of roots, trigonometry, logarithms, e, remainders, bases, sentences."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import tale
from assay.audit.generate.exact import surd
from assay.audit.generate.spell import plain, tex
from assay.audit.generate.words import english


@family("nested_fractions", "a fraction of fractions; answers nested, mixed, as a power; truncated decimals are wrong")
def nested_fractions(rng: random.Random) -> Draw:
    while True:
        a, b, c = rng.randint(1, 9), rng.randint(2, 9), rng.randint(2, 9)
        x = Fraction(a) / (b + Fraction(1, c))
        if x.denominator % 7 == 0 or x.denominator % 3 == 0 or x.denominator % 11 == 0:
            break
    p, q = x.numerator, x.denominator
    k = rng.randint(2, 5)
    t = tale(
        rng,
        f"Compute $\\cfrac{{{a}}}{{{b} + \\cfrac{{1}}{{{c}}}}}$. Give the exact value in any exact form.",
        tex(x),
        x,
        f"The lower part is $\\frac{{{b * c + 1}}}{{{c}}}$.",
    )
    t.right("fraction", tex(x), tex(x, "dfrac"), tex(x, "tfrac"), f"x = {tex(x)}", f"{{{p} \\over {q}}}")
    t.right("slash", plain(x), f"({p})/({q})", f"{p}⁄{q}", form="plain")
    t.right("not reduced", f"\\frac{{{p * k}}}{{{q * k}}}", value=Fraction(p * k, q * k))
    t.right(
        "nested",
        f"\\frac{{\\frac{{{p}}}{{{k}}}}}{{\\frac{{{q}}}{{{k}}}}}",
        f"\\cfrac{{1}}{{\\frac{{{q}}}{{{p}}}}}",
        f"\\frac{{{p}}}{{\\frac{{{q * k}}}{{{k}}}}}",
    )
    t.right(
        "power", f"\\left(\\frac{{{q}}}{{{p}}}\\right)^{{-1}}", f"{p} \\cdot {q}^{{-1}}" if p > 1 else f"{q}^{{-1}}"
    )
    t.wrong("reciprocal", 1 / x, tex(1 / x), f"\\cfrac{{1}}{{\\frac{{{p}}}{{{q}}}}}")
    t.wrong("reciprocal", 1 / x, plain(1 / x), form="plain")
    t.wrong("sign", -x, tex(-x))
    t.wrong("no nesting", Fraction(a, b) + Fraction(1, c), tex(Fraction(a, b) + Fraction(1, c)))
    t.wrong("numerator off", Fraction(p + 1, q), tex(Fraction(p + 1, q)))
    t.wrong("denominator off", Fraction(p, q + 1), tex(Fraction(p, q + 1)), f"\\frac{{{p}}}{{{q + 1}}}")
    for digits in (2, 3):
        cut = Fraction(int(x * 10**digits), 10**digits)
        t.wrong("decimal cut off", cut, f"{float(cut):.{digits}f}", form="plain")
    return t.draw


@family(
    "sum_of_roots", "sqrt(8)+sqrt(18): one root, two roots, rationalised or not; sqrt of the sum, decimals are wrong"
)
def sum_of_roots(rng: random.Random) -> Draw:
    r = rng.choice((2, 3, 5, 6, 7))
    a, b = rng.sample(range(1, 8), 2)
    s = a + b
    gold = surd(0, s, r)
    t = tale(
        rng,
        f"Compute $\\sqrt{{{a * a * r}}} + \\sqrt{{{b * b * r}}}$. Give the exact value in any exact form.",
        f"{s}\\sqrt{{{r}}}",
        gold,
        f"Both numbers under the roots are squares times ${r}$.",
    )
    t.right("one root", f"{s}\\sqrt{{{r}}}", f"{s} \\cdot \\sqrt {r}", f"\\sqrt{{{r}}} \\cdot {s}", value=surd(0, s, r))
    t.right("one root in plain text", f"{s}√{r}", f"{s}*sqrt({r})", f"{s}·√({r})", f"{s} sqrt({r})", form="plain")
    t.right("under the root", f"\\sqrt{{{s * s * r}}}", value=surd(0, 1, s * s * r))
    t.right("below the line", f"\\frac{{{s * r}}}{{\\sqrt{{{r}}}}}", f"\\dfrac{{{2 * s * r}}}{{2\\sqrt{{{r}}}}}")
    t.right("power", f"{s} \\cdot {r}^{{1/2}}", f"{s} \\cdot {r}^{{\\frac{{1}}{{2}}}}")
    t.wrong("under one root", surd(0, 1, (a * a + b * b) * r), f"\\sqrt{{{(a * a + b * b) * r}}}")
    t.wrong("factor", surd(0, s + 1, r), f"{s + 1}\\sqrt{{{r}}}")
    t.wrong("factor", surd(0, s + 1, r), f"{s + 1}√{r}", form="plain")
    t.wrong("difference", surd(0, abs(a - b), r), f"{abs(a - b)}\\sqrt{{{r}}}")
    t.wrong("root lost", surd(s * r, 0, r), str(s * r), form="plain")
    t.wrong("everything under the root", surd(0, 1, s * r), f"\\sqrt{{{s * r}}}", f"{s * r}^{{1/2}}")
    t.wrong("cube root", ("cbrt", s, r), f"{s}\\sqrt[3]{{{r}}}")
    t.wrong("sign", surd(0, -s, r), f"-{s}\\sqrt{{{r}}}")
    cut = int(s * math.sqrt(r) * 1000) / 1000
    t.wrong("decimal", Fraction(str(cut)), f"{cut}", f"{cut:.2f}", form="plain")
    return t.draw


@family(
    "simplest_radical", "a root asked for in simplest radical form: an equal root that is not, or a decimal, is wrong"
)
def simplest_radical(rng: random.Random) -> Draw:
    r, k = rng.choice((2, 3, 5, 6, 7, 10, 11)), rng.choice((4, 6, 8, 9, 10, 12))
    n = k * k * r
    inner = rng.choice([d for d in range(2, k) if k % d == 0])
    t = tale(
        rng,
        f"Write $\\sqrt{{{n}}}$ in simplest radical form: an integer times the root of an integer that no square "
        "greater than 1 divides. A decimal, or a root that can be simplified further, is not accepted.",
        f"{k}\\sqrt{{{r}}}",
        ("form", k, r),
        f"We look for the largest square that divides ${n}$.",
    )
    t.right(
        "latex",
        f"{k}\\sqrt{{{r}}}",
        f"{k}\\,\\sqrt{{{r}}}",
        f"{k} \\cdot \\sqrt{{{r}}}",
        f"\\sqrt{{{n}}} = {k}\\sqrt{{{r}}}",
    )
    t.right("plain", f"{k}√{r}", f"{k}*sqrt({r})", f"{k}√({r})", form="plain")
    t.right("words", f"{k} times the square root of {r}", form="text")
    t.wrong("unchanged", ("form", 1, n), f"\\sqrt{{{n}}}")
    t.wrong("half way", ("form", k // inner, inner * inner * r), f"{k // inner}\\sqrt{{{inner * inner * r}}}")
    t.wrong("exchanged", ("form", r, k), f"{r}\\sqrt{{{k}}}")
    t.wrong("factor", ("form", k + 1, r), f"{k + 1}\\sqrt{{{r}}}")
    t.wrong("square outside", ("form", k * k, r), f"{k * k}\\sqrt{{{r}}}")
    t.wrong("decimal", ("decimal", n), f"{math.sqrt(n):.3f}", form="plain")
    return t.draw


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
    t = tale(
        rng,
        f"Find the exact value of $\\{('sin', 'cos')[i]} {d}^\\circ$.",
        "",
        gold,
        f"The reference angle is ${min(d % 180, 180 - d % 180)}^\\circ$; the quadrant settles the sign.",
    )
    if root == 1:
        t.draw.reference = f"{m}\\frac{{1}}{{2}}"
        t.right("half", f"{m}\\frac{{1}}{{2}}", f"{m}\\tfrac12", f"{m}\\sqrt{{\\frac{{1}}{{4}}}}", f"{m}2^{{-1}}")
        t.right("half plain", f"{m}1/2", f"{m}0.5", f"{m}½", form="plain")
    else:
        t.draw.reference = f"{m}\\frac{{\\sqrt{{{root}}}}}{{2}}"
        t.right(
            "usual", f"{m}\\frac{{\\sqrt{{{root}}}}}{{2}}", f"{m}\\dfrac{{\\sqrt{root}}}{{2}}", f"{m}\\sqrt{{{root}}}/2"
        )
        t.right(
            "front",
            f"{m}\\frac{{1}}{{2}}\\sqrt{{{root}}}",
            f"{m}0.5\\sqrt{{{root}}}",
            f"{m}\\tfrac12 \\cdot \\sqrt{{{root}}}",
        )
        t.right("inside", f"{m}\\sqrt{{\\frac{{{p}}}{{{q}}}}}", f"{m}\\sqrt{{{p / q}}}")
        t.right("not rationalised", f"{m}\\frac{{{root}}}{{2\\sqrt{{{root}}}}}")
        t.right("plain", f"{m}√{root}/2", f"{m}sqrt({root})/2", f"{m}(√{root})/2", form="plain")
        x = sign * math.sqrt(root) / 2
        t.wrong("decimal", ("decimal", x), f"{x:.3f}", f"{x:.2f}", form="plain")
        t.wrong("root of all", ("sqrt", root, 2), f"\\sqrt{{{root}/2}}" if root != 2 else "1")
        t.wrong("not halved", surd(0, sign, root), f"{m}\\sqrt{{{root}}}")
    other = TRIG[d][1 - i]
    o = other[0] * 4 // other[1]
    for kind, s, r in (
        ("sign", -sign, root),
        ("cofunction", other[2], o),
        ("wrong root", sign, {1: 2, 2: 3, 3: 1}[root]),
    ):
        value = surd(0, Fraction(s, 2), r)
        w = "-" if s < 0 else ""
        t.wrong(kind, value, f"{w}\\frac{{\\sqrt{{{r}}}}}{{2}}" if r > 1 else f"{w}\\frac{{1}}{{2}}")
        t.wrong(kind, value, f"{w}√{r}/2" if r > 1 else f"{w}1/2", form="plain")
    return t.draw


@family("log_values", "logarithms that are fractions: LaTeX, mixed, solved for x; reciprocal and rounding are wrong")
def log_values(rng: random.Random) -> Draw:
    base = rng.choice((2, 3, 5, 10))
    a = rng.randint(2, 4)
    b = rng.choice([k for k in range(2, 8) if k % a and base**k < 10**6])
    q = Fraction(b, a)
    t = tale(
        rng,
        f"Find the exact value of $\\log_{{{base**a}}} {base**b}$.",
        tex(q),
        q,
        f"Both numbers are powers of ${base}$: ${base}^{{{a}}}$ and ${base}^{{{b}}}$.",
    )
    t.right("fraction", tex(q), tex(q, "dfrac"), f"x = {tex(q)}", f"\\log_{{{base**a}}} {base**b} = {tex(q)}")
    t.right("slash", plain(q), form="plain")
    t.right(
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
        t.right("mixed", f"{q.numerator // q.denominator}\\frac{{{q.numerator % q.denominator}}}{{{q.denominator}}}")
    if q.denominator in (2, 4):
        t.right("decimal", str(float(q)), form="plain")
    else:
        t.wrong(
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
        t.wrong(kind, v, tex(v), f"x = {tex(v)}")
        t.wrong(kind, v, plain(v), form="plain")
    return t.draw


@family(
    "with_e", "integrals of e^x: roman e, exp, unicode powers, factored; decimals, the order, a lost term are wrong"
)
def with_e(rng: random.Random) -> Draw:
    a, k = rng.randint(2, 5), rng.randint(2, 9)
    t = tale(
        rng,
        f"Evaluate $\\int_0^{{{a}}} {k} e^x \\, dx$ exactly.",
        f"{k}e^{{{a}}} - {k}",
        ("e", k, a),
        f"An antiderivative is ${k}e^x$; insert both limits.",
    )
    t.right("difference", f"{k}e^{{{a}}} - {k}", f"{k}e^{a}-{k}", f"{k}\\mathrm{{e}}^{{{a}}} - {k}", f"-{k} + {k}e^{a}")
    t.right(
        "factored",
        f"{k}(e^{{{a}}} - 1)",
        f"{k}\\left(e^{{{a}}}-1\\right)",
        f"(e^{a} - 1) \\cdot {k}",
        f"-{k}(1 - e^{{{a}}})",
    )
    t.right("exp", f"{k}\\exp({a}) - {k}", f"{k}(\\exp({a}) - 1)")
    t.right(
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
        t.wrong(kind, ("text", text), text)
    x = k * math.exp(a) - k
    t.wrong("decimal", ("decimal", x), f"{x:.2f}", f"{x:.1f}", form="plain")
    return t.draw
