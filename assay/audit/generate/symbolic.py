"""Equations of lines and circles, expressions in several letters, rational and trigonometric functions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Polynomial, polynomial
from assay.audit.generate.spell import nonzero, plain, tex


def signed(value: Fraction | int, tail: str = "", latex: bool = True, first: bool = False) -> str:
    """Write a term with its sign in front: ``+ 3x``, ``- x``; nothing for 0."""
    value = Fraction(value)
    if not value:
        return ""
    size = abs(value)
    number = "" if size == 1 and tail else (tex(size) if latex else plain(size))
    if not latex and tail and size.denominator > 1:
        number = f"({number})"
    if first:
        return ("-" if value < 0 else "") + number + tail
    return (" - " if value < 0 else " + ") + number + tail


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


def written(p: Polynomial, product: str = "", power: str = "^{}", backwards: bool = False) -> str:
    """Write a polynomial in several letters."""
    text = ""
    for exponents, c in p.terms[::-1] if backwards else p.terms:
        letters = [n + (power.format(e) if e > 1 else "") for n, e in zip(p.names, exponents, strict=True) if e]
        text += signed(c, "", False, first=not text) if not letters else _term(c, letters, product, not text)
    return text or "0"


def _term(c: Fraction, letters: list[str], product: str, first: bool) -> str:
    size = [] if abs(c) == 1 else [plain(abs(c))]
    body = product.join([*size, *letters])
    if first:
        return ("-" if c < 0 else "") + body
    return (" - " if c < 0 else " + ") + body


@family(
    "several_letters_expressions", "expressions in two letters: order of terms and factors, products, common factors"
)
def expressions(rng: random.Random) -> Draw:
    names = rng.choice(("ab", "xy", "mn"))
    c1, c2, k = nonzero(rng, -6, 6), nonzero(rng, -6, 6), rng.choice((1, 2, 3, 5))
    shared = rng.choice(((1, 0), (0, 1), (0, 0)))
    common = polynomial(names, {shared: k})
    inner = polynomial(names, {(1, 0): c1, (0, 1): c2})
    gold = common * inner
    part = polynomial(names, {shared: rng.randint(1, 5), (1, 1): rng.randint(-4, 4)})
    minus = polynomial(names, {p: -c for p, c in part.terms})
    question = f"Let $P = {written(gold + minus)}$ and $Q = {written(part)}$. Find $P + Q$ in any form."
    draw = Draw(question, written(gold), gold)
    draw.right("terms", written(gold), written(gold, backwards=True))
    draw.right("latex", written(gold, power="^{{{}}}"), written(gold, r" \cdot "), form="latex")
    draw.right("code", written(gold, "*"), written(gold, "*", "**{}"))
    factor = written(common)
    if factor != "1":
        draw.right("factored", f"{factor}({written(inner)})", value=common * inner)
        draw.right("factored", rf"{factor}\left({written(inner, backwards=True)}\right)", form="latex")
        draw.right("factored, code", f"{written(common, '*')}*({written(inner, '*')})")
    swapped = polynomial(names, {p[::-1]: c for p, c in gold.terms})
    powers, lead = gold.terms[0]
    rest = dict(gold.terms)
    for kind, value in (
        ("letters swapped", swapped),
        ("negated", polynomial(names, {p: -c for p, c in gold.terms})),
        ("a coefficient off by one", polynomial(names, rest | {powers: lead + 1})),
        ("a sign flipped", polynomial(names, rest | {powers: -lead})),
        ("a term missing", polynomial(names, dict(gold.terms[1:]))),
        ("a power off", polynomial(names, dict(gold.terms[1:]) | {(powers[0] + 1, powers[1]): lead})),
        ("a summand", part),
    ):
        draw.wrong(kind, value, written(value), written(value, "*"))
        draw.wrong(kind, value, written(value, power="^{{{}}}"), form="latex")
    return draw


def linear(a: int, b: int) -> Polynomial:
    """Return ``a x + b``."""
    return polynomial("x", {(1,): a, (0,): b})


def shown_linear(a: int, b: int) -> str:
    return (signed(a, "x", first=True) + signed(b)) if a else str(b)


@family(
    "rational_functions", "quotients of polynomials: order, factored or expanded below, signs moved, partial fractions"
)
def rational_functions(rng: random.Random) -> Draw:
    r, s = rng.sample([n for n in range(-7, 8) if n], 2)
    a, b = nonzero(rng, -6, 6), nonzero(rng, -6, 6)
    # a/(x-r) + b/(x-s) has neither root in common above and below, because a and b are not 0.
    n1, n0 = a + b, -(a * s + b * r)
    below = linear(1, -r) * linear(1, -s)

    def exact(x1: int, x0: int, bottom: Polynomial) -> tuple[Polynomial, Polynomial]:
        return linear(x1, x0), bottom

    gold = exact(n1, n0, below)
    d1, d0 = -(r + s), r * s
    sign = "+" if b > 0 else "-"
    question = f"Write $\\frac{{{a}}}{{x{signed(-r)}}} {sign} \\frac{{{abs(b)}}}{{x{signed(-s)}}}$ as one fraction."
    question += " Any equal fraction is accepted."
    top = shown_linear(n1, n0)
    factored = f"(x{signed(-r)})(x{signed(-s)})"
    expanded = f"x^2{signed(d1, 'x')}{signed(d0)}"
    draw = Draw(question, rf"\frac{{{top}}}{{{factored}}}", gold)
    draw.right("factored below", rf"\frac{{{top}}}{{{factored}}}", rf"\dfrac{{{top}}}{{{factored}}}", form="latex")
    draw.right("expanded below", rf"\frac{{{top}}}{{{expanded}}}", form="latex")
    draw.right("code", f"({top})/({factored})", f"({top})/({expanded})")
    draw.right("order below", rf"\frac{{{top}}}{{(x{signed(-s)})(x{signed(-r)})}}", form="latex")
    draw.right("sign moved", rf"-\frac{{{shown_linear(-n1, -n0)}}}{{{factored}}}", form="latex")
    draw.right("times two", rf"\frac{{{shown_linear(2 * n1, 2 * n0)}}}{{2{factored}}}", form="latex")
    for kind, x1, x0, p, q in (
        ("negated", -n1, -n0, r, s),
        ("numerator's constant off by one", n1, n0 + 1, r, s),
        ("numerator's slope off by one", n1 + 1, n0, r, s),
        ("a sign below", n1, n0, -r, s),
        ("a sign below", n1, n0, r, -s),
        ("numerators added", 0, a + b, r, s),
    ):
        if not (x1 or x0) or x1 * p + x0 == 0 or x1 * q + x0 == 0:
            continue
        value = exact(x1, x0, linear(1, -p) * linear(1, -q))
        bottom = f"(x{signed(-p)})(x{signed(-q)})"
        draw.wrong(kind, value, rf"\frac{{{shown_linear(x1, x0)}}}{{{bottom}}}", form="latex")
        draw.wrong(kind, value, f"({shown_linear(x1, x0)})/({bottom})")
    draw.wrong("numerator alone", gold[0], top)
    if n1:
        draw.wrong("inverted", (gold[1], gold[0]), rf"\frac{{{factored}}}{{{top}}}", form="latex")
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
