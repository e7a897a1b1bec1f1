"""Answers that are expressions: derivatives, antiderivatives, factors, inverse functions, sequences."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import plus, tale
from assay.audit.generate.spell import tex, times


@family("product_rule", "derivative of a x e^(bx): factored, expanded, exp; a lost term or factor is wrong")
def product_rule(rng: random.Random) -> Draw:
    a, b = rng.randint(2, 9), rng.randint(2, 7)
    if a == b:
        a += 1
    e = f"e^{{{b}x}}"
    t = tale(
        rng,
        f"Differentiate $f(x) = {a}x\\,{e}$.",
        f"{a}{e}(1 + {b}x)",
        (a, a * b),
        "By the product rule, with the chain rule for the exponential.",
    )
    t.right(
        "factored",
        f"{a}{e}(1 + {b}x)",
        f"f'(x) = {a}({b}x + 1){e}",
        f"{a}(1+{b}x)\\,{e}",
        f"({a * b}x + {a}){e}",
        f"{e}\\left({a} + {a * b}x\\right)",
    )
    t.right(
        "expanded",
        f"{a}{e} + {a * b}x{e}",
        f"f'(x) = {a * b}x\\,{e} + {a}\\,{e}",
        f"\\frac{{df}}{{dx}} = {a}{e} + {a * b}x {e}",
    )
    t.right("exp", f"{a}({b}x+1)\\exp({b}x)", f"{a}\\left(1 + {b}x\\right)\\exp({b}x)")
    t.right("plain", f"{a}*exp({b}*x)*(1 + {b}*x)", f"{a}e^({b}x) (1 + {b}x)", form="plain")
    for kind, value, text in (
        ("no product rule", (0, a * b), f"{a * b}{e}"),
        ("first term only", (a, 0), f"{a}{e}"),
        ("second term only", (0, a * b, "x"), f"{a * b}x{e}"),
        ("no chain rule", (a, a), f"{a}{e}(1 + x)"),
        ("minus", (a, -a * b), f"{a}{e}(1 - {b}x)"),
        ("factor", (a + 1, (a + 1) * b), f"{a + 1}{e}(1 + {b}x)"),
        ("exponent", (a, a * b, "other e"), f"{a}e^{{{b + 1}x}}(1 + {b}x)"),
        ("unchanged", ("f",), f"{a}x{e}"),
        ("e lost", ("no e",), f"{a}(1 + {b}x)"),
    ):
        t.wrong(kind, value, text, f"f'(x) = {text}")
    return t.draw


@family(
    "antiderivative", "an antiderivative with a constant: any order, factored; the derivative, coefficients are wrong"
)
def antiderivative(rng: random.Random) -> Draw:
    n = rng.randint(2, 4)
    p, q = rng.randint(1, 6), rng.choice([k for k in range(-7, 8) if k])
    a, b = p * (n + 1), 2 * q
    t = tale(
        rng,
        f"Find $\\int \\left({a}x^{{{n}}} {plus(b)}x\\right) dx$, with $C$ for the constant.",
        "",
        (n + 1, p, q),
        "Use the power rule for each term.",
    )

    def spell(m: int, p: int, q: int) -> list[str]:
        x, y = times(p, f"x^{{{m}}}"), times(abs(q), "x^2")
        s = "+" if q > 0 else "-"
        return [
            f"{x} {s} {y} + C",
            f"C {s} {y} + {x}",
            f"F(x) = {x} {s} {y} + C",
            f"{'' if s == '+' else '-'}{y} + {x} + C",
            f"{x} {s} {y} + \\mathrm{{C}}",
        ]

    t.draw.reference = spell(n + 1, p, q)[0]
    t.right("sum", *spell(n + 1, p, q))
    inner = times(p, "x" if n == 2 else f"x^{{{n - 1}}}")
    t.right("factored", f"x^2\\left({inner} {plus(q)}\\right) + C", f"x^2({plus(q).removeprefix('+ ')} + {inner}) + C")
    for kind, value in (
        ("not divided", (n + 1, a, b)),
        ("sign", (n + 1, p, -q)),
        ("coefficient", (n + 1, p + 1, q)),
        ("exponent", (n + 2, p, q)),
        ("half", (n + 1, p, b)),
    ):
        t.wrong(kind, value, *spell(*value))
    t.wrong(
        "derivative",
        ("derivative",),
        f"{times(a * n, 'x' if n == 2 else f'x^{{{n - 1}}}')} {plus(b)} + C",
        f"{times(a * n, 'x' if n == 2 else f'x^{{{n - 1}}}')} {plus(b)}",
    )
    t.wrong("integrand", ("integrand",), f"{a}x^{{{n}}} {plus(b)}x + C")
    return t.draw


@family(
    "factored",
    "factored form demanded: order and signs of the factors are free; expanded, half factored, wrong signs are wrong",
)
def factored(rng: random.Random) -> Draw:
    while True:
        p, q = rng.randint(-9, 9), rng.randint(-9, 9)
        if p and q and p != q and p != -q:
            break
    k = rng.choice((1, 1, 2, 3, 5))
    s, m = p + q, p * q
    poly = f"{times(k, 'x^2')} {plus(k * -s)}x {plus(k * m)}".replace(" 1x", " x")
    c = "" if k == 1 else str(k)
    t = tale(
        rng,
        f"Factor ${poly}$ completely into linear factors. An expanded or partly factored form is not accepted.",
        "",
        ("product", k, frozenset((p, q))),
        f"Look for two numbers with sum ${s}$ and product ${m}$.",
    )

    def f(r: int) -> str:
        return f"(x {plus(-r)})"

    t.draw.reference = f"{c}{f(p)}{f(q)}"
    t.right(
        "factors",
        f"{c}{f(p)}{f(q)}",
        f"{c}{f(q)}{f(p)}",
        f"{c}\\left(x {plus(-p)}\\right)\\left(x {plus(-q)}\\right)",
        f"{c}{f(q)} \\cdot {f(p)}",
    )
    t.right("turned factor", f"{c}({-p} + x)({-q} + x)", f"-{c}({p} - x){f(q)}")
    t.right("equation", f"{poly} = {c}{f(p)}{f(q)}")
    t.right("plain", f"{c}{f(p)}{f(q)}", f"{c + '*' if c else ''}{f(p)}*{f(q)}", form="plain")
    for kind, kk, u, v in (
        ("signs", k, -p, -q),
        ("sign", k, -p, q),
        ("sign", k, p, -q),
        ("off", k, p + 1, q),
        ("factor", k + 1, p, q),
    ):
        value = ("product", kk, frozenset((u, v)))
        cc = "" if kk == 1 else str(kk)
        if u and u != v:
            t.wrong(kind, value, f"{cc}{f(u)}{f(v)}", f"{cc}{f(v)} \\cdot {f(u)}")
    t.wrong("not factored", ("sum", k, s, m), poly)
    t.wrong("half factored", ("half", k, s, m), f"{c}x(x {plus(-s)}) {plus(k * m)}" if s else f"{c}(x^2 {plus(m)})")
    t.wrong("roots", ("roots", p, q), f"x = {p}, {q}", f"\\{{{p}, {q}\\}}")
    t.wrong("one factor", ("one", p), f(p))
    return t.draw


@family(
    "inverse_function",
    "inverse of ax+b: one fraction, two terms, factored; the reciprocal, signs, the function itself are wrong",
)
def inverse_function(rng: random.Random) -> Draw:
    a, b = rng.choice((2, 3, 4, 5, 6, 7, 8)), rng.choice([k for k in range(-9, 10) if k])
    t = tale(
        rng,
        f"Find the inverse of $f(x) = {a}x {plus(b)}$, as an expression in $x$.",
        f"\\frac{{x {plus(-b)}}}{{{a}}}",
        (a, b),
        "Set $y = f(x)$, exchange $x$ and $y$, and solve for $y$.",
    )

    def spell(a: int, b: int) -> tuple[list[str], list[str]]:
        s = "-" if b > 0 else "+"
        f = f"\\frac{{x {plus(-b)}}}{{{a}}}"
        return (
            [
                f,
                f"f^{{-1}}(x) = {f}",
                f"y = {f}",
                f"f^{{-1}}(x) = \\frac{{x}}{{{a}}} {s} {tex(Fraction(abs(b), a))}",
                f"\\frac{{1}}{{{a}}}(x {plus(-b)})",
                f"\\frac{{1}}{{{a}}}x {s} {tex(Fraction(abs(b), a))}",
                f"-\\frac{{{b} - x}}{{{a}}}",
                f"f^{{-1}}(x)=\\dfrac{{{-b} + x}}{{{a}}}",
            ],
            [f"(x {plus(-b)})/{a}", f"f⁻¹(x) = (x {plus(-b)})/{a}", f"y = (x {plus(-b)}) / {a}"],
        )

    latex, plain = spell(a, b)
    for n, text in enumerate(latex):
        t.right(f"latex {n}", text)
    t.right("plain", *plain, form="plain")
    for kind, aa, bb in (
        ("sign", a, -b),
        ("factor", a + 1, b),
        ("shift", a, b + 1) if b != -1 else ("shift", a, b - 1),
    ):
        latex, plain = spell(aa, bb)
        t.wrong(kind, (aa, bb), *latex)
        t.wrong(kind, (aa, bb), *plain, form="plain")
    t.wrong("reciprocal", ("1/f",), f"\\frac{{1}}{{{a}x {plus(b)}}}", f"f^{{-1}}(x) = \\frac{{1}}{{{a}x {plus(b)}}}")
    t.wrong("bracket lost", ("x - b/a",), f"x {'-' if b > 0 else '+'} {tex(Fraction(abs(b), a))}")
    t.wrong("not inverted", ("f",), f"{a}x {plus(b)}")
    t.wrong("negated", ("-f",), f"-{a}x {plus(-b)}")
    return t.draw


@family(
    "nth_term",
    "the n-th term of an arithmetic sequence: any order, a + (n-1)d, factored; shifted by one, another step are wrong",
)
def nth_term(rng: random.Random) -> Draw:
    d, a = rng.randint(2, 9), rng.randint(-6, 15)
    c = a - d
    while not c or abs(c) == d:
        a += 1
        c = a - d
    terms = ", ".join(str(a + i * d) for i in range(4))
    t = tale(
        rng,
        f"The arithmetic sequence ${terms}, \\dots$ starts with $a_1 = {a}$. Find a closed formula for $a_n$.",
        f"{d}n {plus(c)}",
        (d, c),
        f"Consecutive terms differ by ${d}$.",
    )
    first = f"{a} + " if a else ""
    t.right(
        "closed",
        f"{d}n {plus(c)}",
        f"a_n = {d}n {plus(c)}",
        f"{c} + {d}n",
        f"a_n = {d} \\cdot n {plus(c)}",
        f"a_{{n}} = {d}n{plus(c).replace(' ', '')}",
    )
    t.right(
        "from the first",
        f"a_n = {first}(n - 1) \\cdot {d}",
        f"{first}{d}(n-1)",
        f"a_n = {first}{d}\\left(n - 1\\right)",
    )
    t.right("plain", f"a_n = {d}n {plus(c)}", f"aₙ = {d}n {plus(c)}", f"{d}*n {plus(c)}", form="plain")
    for kind, dd, cc in (
        ("shift", d, a),
        ("step", d + 1, c),
        ("exchanged", c, d),
        ("sign", -d, c),
        ("sign", d, -c),
        ("constant", d, c + 1),
    ):
        t.wrong(kind, (dd, cc), f"a_n = {times(dd, 'n')} {plus(cc)}" if cc else f"a_n = {times(dd, 'n')}")
        if cc:
            t.wrong(kind, (dd, cc), f"{times(dd, 'n')} {plus(cc)}", form="plain")
    t.wrong("bracket", (d, d * c), f"{d}(n {plus(c)})")
    t.wrong("next term", ("number", a + 4 * d), str(a + 4 * d), form="plain")
    t.wrong("power", ("power", d), f"{times(a, '')}\\cdot {d}^{{n-1}}" if a > 1 else f"{d}^{{n}}")
    return t.draw
