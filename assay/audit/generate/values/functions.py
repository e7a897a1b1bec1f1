"""Derivatives, antiderivatives, inverse functions, sequences, trigonometric expressions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    plus,
    tex,
    times,
)


@family("product_rule", "derivative of a x e^(bx): factored, expanded, exp; a lost term or factor is wrong")
def product_rule(rng: random.Random) -> Draw:
    a, b = rng.randint(2, 9), rng.randint(2, 7)
    if a == b:
        a += 1
    e = f"e^{{{b}x}}"
    draw = Draw(
        f"Differentiate $f(x) = {a}x\\,{e}$.",
        f"{a}{e}(1 + {b}x)",
        (a, a * b),
        "By the product rule, with the chain rule for the exponential.",
        form="latex",
    )
    draw.right(
        "factored",
        f"{a}{e}(1 + {b}x)",
        f"f'(x) = {a}({b}x + 1){e}",
        f"{a}(1+{b}x)\\,{e}",
        f"({a * b}x + {a}){e}",
        f"{e}\\left({a} + {a * b}x\\right)",
    )
    draw.right(
        "expanded",
        f"{a}{e} + {a * b}x{e}",
        f"f'(x) = {a * b}x\\,{e} + {a}\\,{e}",
        f"\\frac{{df}}{{dx}} = {a}{e} + {a * b}x {e}",
    )
    draw.right("exp", f"{a}({b}x+1)\\exp({b}x)", f"{a}\\left(1 + {b}x\\right)\\exp({b}x)")
    draw.right("plain", f"{a}*exp({b}*x)*(1 + {b}*x)", f"{a}e^({b}x) (1 + {b}x)", form="plain")
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
        draw.wrong(kind, value, text, f"f'(x) = {text}")
    return draw


@family(
    "antiderivative", "an antiderivative with a constant: any order, factored; the derivative, coefficients are wrong"
)
def antiderivative(rng: random.Random) -> Draw:
    n = rng.randint(2, 4)
    p, q = rng.randint(1, 6), rng.choice([k for k in range(-7, 8) if k])
    a, b = p * (n + 1), 2 * q
    draw = Draw(
        f"Find $\\int \\left({a}x^{{{n}}} {plus(b)}x\\right) dx$, with $C$ for the constant.",
        "",
        (n + 1, p, q),
        "Use the power rule for each term.",
        form="latex",
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

    draw.reference = spell(n + 1, p, q)[0]
    draw.right("sum", *spell(n + 1, p, q))
    inner = times(p, "x" if n == 2 else f"x^{{{n - 1}}}")
    draw.right(
        "factored", f"x^2\\left({inner} {plus(q)}\\right) + C", f"x^2({plus(q).removeprefix('+ ')} + {inner}) + C"
    )
    for kind, value in (
        ("not divided", (n + 1, a, b)),
        ("sign", (n + 1, p, -q)),
        ("coefficient", (n + 1, p + 1, q)),
        ("exponent", (n + 2, p, q)),
        ("half", (n + 1, p, b)),
    ):
        draw.wrong(kind, value, *spell(*value))
    draw.wrong(
        "derivative",
        ("derivative",),
        f"{times(a * n, 'x' if n == 2 else f'x^{{{n - 1}}}')} {plus(b)} + C",
        f"{times(a * n, 'x' if n == 2 else f'x^{{{n - 1}}}')} {plus(b)}",
    )
    draw.wrong("integrand", ("integrand",), f"{a}x^{{{n}}} {plus(b)}x + C")
    return draw


@family(
    "inverse_function",
    "inverse of ax+b: one fraction, two terms, factored; the reciprocal, signs, the function itself are wrong",
)
def inverse_function(rng: random.Random) -> Draw:
    a, b = rng.choice((2, 3, 4, 5, 6, 7, 8)), rng.choice([k for k in range(-9, 10) if k])
    draw = Draw(
        f"Find the inverse of $f(x) = {a}x {plus(b)}$, as an expression in $x$.",
        f"\\frac{{x {plus(-b)}}}{{{a}}}",
        (a, b),
        "Set $y = f(x)$, exchange $x$ and $y$, and solve for $y$.",
        form="latex",
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

    for kind, aa, bb in (
        ("right", a, b),
        ("sign", a, -b),
        ("factor", a + 1, b),
        ("shift", a, b + 1) if b != -1 else ("shift", a, b - 1),
    ):
        latex, plain = spell(aa, bb)
        draw.spell(kind, (aa, bb), plain, latex)
    draw.wrong("reciprocal", ("1/f",), f"\\frac{{1}}{{{a}x {plus(b)}}}", f"f^{{-1}}(x) = \\frac{{1}}{{{a}x {plus(b)}}}")
    draw.wrong("bracket lost", ("x - b/a",), f"x {'-' if b > 0 else '+'} {tex(Fraction(abs(b), a))}")
    draw.wrong("not inverted", ("f",), f"{a}x {plus(b)}")
    draw.wrong("negated", ("-f",), f"-{a}x {plus(-b)}")
    return draw


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
    draw = Draw(
        f"The arithmetic sequence ${terms}, \\dots$ starts with $a_1 = {a}$. Find a closed formula for $a_n$.",
        f"{d}n {plus(c)}",
        (d, c),
        f"Consecutive terms differ by ${d}$.",
        form="latex",
    )
    first = f"{a} + " if a else ""
    draw.right(
        "closed",
        f"{d}n {plus(c)}",
        f"a_n = {d}n {plus(c)}",
        f"{c} + {d}n",
        f"a_n = {d} \\cdot n {plus(c)}",
        f"a_{{n}} = {d}n{plus(c).replace(' ', '')}",
    )
    draw.right(
        "from the first",
        f"a_n = {first}(n - 1) \\cdot {d}",
        f"{first}{d}(n-1)",
        f"a_n = {first}{d}\\left(n - 1\\right)",
    )
    draw.right("plain", f"a_n = {d}n {plus(c)}", f"aₙ = {d}n {plus(c)}", f"{d}*n {plus(c)}", form="plain")
    for kind, dd, cc in (
        ("shift", d, a),
        ("step", d + 1, c),
        ("exchanged", c, d),
        ("sign", -d, c),
        ("sign", d, -c),
        ("constant", d, c + 1),
    ):
        draw.wrong(kind, (dd, cc), f"a_n = {times(dd, 'n')} {plus(cc)}" if cc else f"a_n = {times(dd, 'n')}")
        if cc:
            draw.wrong(kind, (dd, cc), f"{times(dd, 'n')} {plus(cc)}", form="plain")
    draw.wrong("bracket", (d, d * c), f"{d}(n {plus(c)})")
    draw.wrong("next term", ("number", a + 4 * d), str(a + 4 * d), form="plain")
    draw.wrong("power", ("power", d), f"{times(a, '')}\\cdot {d}^{{n-1}}" if a > 1 else f"{d}^{{n}}")
    return draw


@dataclass(frozen=True, slots=True)
class Waves:
    """A finite Fourier series: ``(frequency, cosine, sine)`` by frequency, without zeros; made by :func:`waves`."""

    terms: tuple[tuple[int, Fraction, Fraction], ...]

    def __str__(self) -> str:
        return " + ".join(f"({c})*cos({n}*x) + ({s})*sin({n}*x)" for n, c, s in self.terms) or "0"


def waves(**coefficients: Fraction | int) -> Waves:
    """Return the series with ``c2=`` times ``cos(2x)``, ``s1=`` times ``sin(x)``, ``c0=`` the constant."""
    numbers = sorted({int(name[1:]) for name in coefficients})
    terms = [(n, Fraction(coefficients.get(f"c{n}", 0)), Fraction(coefficients.get(f"s{n}", 0))) for n in numbers]
    return Waves(tuple(t for t in terms if t[1] or t[2]))


@family("trigonometric", "trigonometric expressions: double angles, squares of sine and cosine")
def trigonometric(rng: random.Random) -> Draw:
    k = rng.randint(1, 6)
    pick = rng.randrange(3)
    front, double = {1: ""}.get(k, str(k)), 2 * k
    tail = r" Any equal expression is accepted."
    if pick == 0:
        draw = Draw(f"Find the derivative of ${front}\\sin^2 x$.{tail}", rf"{front}\sin(2x)", waves(s2=k))
        draw.right(
            "double angle", rf"{front}\sin(2x)", rf"{front}\sin 2x", rf"{front} \sin\left(2x\right)", form="latex"
        )
        draw.right(
            "product", rf"{double}\sin x \cos x", rf"{double}\sin(x)\cos(x)", rf"{double}\cos x\sin x", form="latex"
        )
        draw.right("code", f"{k}*sin(2*x)", f"{double}*sin(x)*cos(x)")
        draw.wrong("cosine", waves(c2=k), rf"{front}\cos(2x)", form="latex")
        draw.wrong("factor", waves(s2=Fraction(k, 2)), rf"{front}\sin x \cos x", form="latex")
        draw.wrong("factor", waves(s2=2 * k), rf"{double}\sin(2x)", form="latex")
        draw.wrong("sign", waves(s2=-k), rf"-{front}\sin(2x)", form="latex")
        draw.wrong("no chain", waves(s1=2 * k), rf"{double}\sin x", form="latex")
        draw.wrong("no chain", waves(s1=2 * k), f"{double}*sin(x)")
    elif pick == 1:
        draw = Draw(
            f"Write ${front}\\cos^2 x - {front}\\sin^2 x$ with one function.{tail}", rf"{front}\cos(2x)", waves(c2=k)
        )
        draw.right("double angle", rf"{front}\cos(2x)", rf"{front}\cos 2x", form="latex")
        draw.right("cosine squared", rf"{double}\cos^2 x - {k}", rf"{double}\cos^2(x) - {k}", form="latex")
        draw.right("sine squared", rf"{k} - {double}\sin^2 x", rf"{k} - {double}\sin^{{2}}(x)", form="latex")
        draw.right("code", f"{k}*cos(2*x)", f"{double}*cos(x)**2 - {k}")
        draw.wrong("sine", waves(s2=k), rf"{front}\sin(2x)", form="latex")
        draw.wrong("constant", waves(c0=k), str(k))
        draw.wrong("sign", waves(c2=-k), rf"-{front}\cos(2x)", rf"{k} - {double}\cos^2 x", form="latex")
        draw.wrong("wrong constant", waves(c0=k, c2=k), rf"{double}\cos^2 x", form="latex")
        draw.wrong("angle", waves(c1=k), rf"{front}\cos x", form="latex")
    else:
        draw = Draw(
            f"Simplify ${front}\\sin^2 x + {front}\\cos^2 x + {front}\\cos x$.{tail}",
            rf"{k} + {front}\cos x",
            waves(c0=k, c1=k),
        )
        draw.right("sum", rf"{k} + {front}\cos x", rf"{front}\cos x + {k}", rf"{k} + {front}\cos(x)", form="latex")
        draw.right("code", f"{k} + {k}*cos(x)", f"{k}*cos(x) + {k}")
        if k > 1:
            draw.right("factored", rf"{k}(1 + \cos x)", rf"{k}\left(\cos x + 1\right)", form="latex")
        draw.wrong("constant left out", waves(c1=k), rf"{front}\cos x", form="latex")
        draw.wrong("sign", waves(c0=k, c1=-k), rf"{k} - {front}\cos x", form="latex")
        draw.wrong("sine", waves(c0=k, s1=k), rf"{k} + {front}\sin x", form="latex")
        draw.wrong("constant off by one", waves(c0=k + 1, c1=k), rf"{k + 1} + {front}\cos x", form="latex")
    return draw
