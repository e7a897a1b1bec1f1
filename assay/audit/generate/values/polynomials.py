"""Polynomials in one letter or two: expanded, factored, as quotients."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Polynomial, polynomial
from assay.audit.generate.spell import (
    MINUS,
    RAISED,
    nonzero,
    plain,
    plus,
    signed,
    times,
)


def univariate(coefficients: Sequence[int], letter: str = "x") -> Polynomial:
    """Return the polynomial with these coefficients, the constant one first."""
    return polynomial(letter, {(i,): c for i, c in enumerate(coefficients)})


def written(p: Polynomial, product: str = "", power: str = "^{}", backwards: bool = False) -> str:
    """Write a polynomial; ``product`` between factors, ``power`` with ``{}`` for the exponent."""
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


@family("polynomials", "polynomials in one variable: order, notation of powers and products, factored, nested")
def polynomials(rng: random.Random) -> Draw:
    letter = rng.choice("xxtn")
    p, q, k = nonzero(rng, -9, 9), nonzero(rng, -9, 9), rng.choice((1, 1, 2, 3, -1, 4))
    gold = [k * p * q, -k * (p + q), k]
    cubic = rng.random() < 0.3
    if cubic:
        gold = [0, *gold]
    f = [rng.randint(-9, 9) for _ in gold]
    g = [a - b for a, b in zip(gold, f, strict=True)]

    def show(coefficients: Sequence[int], power: str = "^{}", product: str = "", up: bool = False) -> str:
        return written(univariate(coefficients, letter), product, power, up)

    question = f"Let $f({letter}) = {show(f)}$ and $g({letter}) = {show(g)}$. "
    draw = Draw(question + f"Find $f({letter}) + g({letter})$ in any form.", show(gold), univariate(gold, letter))
    draw.right("latex", show(gold, "^{{{}}}"), show(gold, "^{}", r" \cdot "), form="latex")
    draw.right("ascending", show(gold, up=True))
    draw.right("code", show(gold, "**{}", "*"), show(gold, "^{}", "*"))
    draw.right("no spaces", show(gold).replace(" ", ""))
    unicode_text = show(gold, "^{}")
    for i in (2, 3):
        unicode_text = unicode_text.replace(f"^{i}", str(i).translate(RAISED))
    draw.right("unicode", unicode_text, unicode_text.replace("-", MINUS))
    front = {1: "", -1: "-"}.get(k, str(k)) + (letter if cubic else "")
    pair = f"({letter} {'-' if p > 0 else '+'} {abs(p)})({letter} {'-' if q > 0 else '+'} {abs(q)})"
    shift = univariate([-p, 1], letter) * univariate([-q, 1], letter) * univariate([k], letter)
    factored = shift * univariate([0, 1], letter) if cubic else shift
    draw.right("factored", front + pair, value=factored)
    if p == q:
        square = f"({letter} {'-' if p > 0 else '+'} {abs(p)})"
        draw.right("factored", f"{front}{square}^2", value=factored)
    draw.right("named", f"f({letter}) + g({letter}) = {show(gold)}", f"f({letter})+g({letter}) = {front}{pair}")
    constant, middle = gold[-3], gold[-2]
    nested = f"{letter}({show([middle, k])}) {'-' if constant < 0 else '+'} {abs(constant)}"
    draw.right("nested", f"{letter}({nested})" if cubic else nested)
    at = rng.randrange(len(gold) - 1)
    for kind, value in (
        ("a coefficient off by one", [c + (i == at) for i, c in enumerate(gold)]),
        ("a sign flipped", [-c if i == at else c for i, c in enumerate(gold)]),
        ("negated", [-c for c in gold]),
        ("a term missing", [0 if i == at else c for i, c in enumerate(gold)]),
        ("a power shifted", [0, *gold]),
        ("one summand", f),
        ("difference", [a - b for a, b in zip(f, g, strict=True)]),
    ):
        exact = univariate(value, letter)
        draw.wrong(kind, exact, show(value), show(value, "**{}", "*"))
        draw.wrong(kind, exact, show(value, "^{{{}}}"), form="latex")
    for s, t in ((-p, -q), (p, -q), (p + 1, q)):
        other = f"({letter} {'-' if s >= 0 else '+'} {abs(s)})({letter} {'-' if t >= 0 else '+'} {abs(t)})"
        product = univariate([-s, 1], letter) * univariate([-t, 1], letter) * univariate([k], letter)
        draw.wrong("another factor", product * univariate([0, 1], letter) if cubic else product, front + other)
    return draw


@family(
    "two_letters",
    "the square of ax + by: order of the terms and letters; a lost mixed term, signs, coefficients are wrong",
)
def two_letters(rng: random.Random) -> Draw:
    a, b = rng.randint(1, 7), rng.choice([k for k in range(-7, 8) if k])
    u, v, m = a * a, b * b, 2 * a * b
    p, q = rng.choice((("x", "y"), ("a", "b"), ("s", "t"), ("m", "n")))
    draw = Draw(
        f"Expand $({times(a, p)} {'+' if b > 0 else '-'} {times(abs(b), q)})^2$. Any equal expression other than the"
        " given power is accepted.",
        "",
        (u, m, v),
        "Square of a sum: first, twice the product, last.",
        form="latex",
    )

    def spell(u: int, m: int, v: int) -> tuple[list[str], list[str]]:
        s = "+" if m > 0 else "-"
        U, V, M, W = (
            times(u, f"{p}^2"),
            times(v, f"{q}^2"),
            times(abs(m), f"{p}{q}"),
            times(abs(m), f"{q}{p}"),
        )
        lead = "-" if m < 0 else ""
        return (
            [
                f"{U} {s} {M} + {V}",
                f"{V} + {U} {s} {M}",
                f"{V} {s} {W} + {U}",
                f"{lead}{M} + {U} + {V}",
                f"{times(u, f'{p}^{{2}}')}{s}{times(abs(m), f'{p} {q}')}+{times(v, f'{q}^{{2}}')}",
            ],
            [
                f"{U} {s} {M} + {V}",
                f"{times(u, p + '²')} {s} {M} + {times(v, q + '²')}",
                f"{u}*{p}^2 {s} {abs(m)}*{p}*{q} + {v}*{q}^2",
            ],
        )

    draw.reference = spell(u, m, v)[0][0]
    for kind, value in (
        ("right", (u, m, v)),
        ("not doubled", (u, a * b, v)),
        ("sign", (u, -m, v)),
        ("coefficient", (u + 1, m, v)),
        ("coefficient", (u, m, v + 1)),
        ("exchanged", (v, m, u)),
    ):
        latex, plain = spell(*value)
        draw.spell(kind, value, plain, latex)
    draw.wrong(
        "mixed term lost",
        (u, 0, v),
        f"{times(u, f'{p}^2')} + {times(v, f'{q}^2')}",
        f"{times(v, f'{q}^2')} + {times(u, f'{p}^2')}",
    )
    draw.wrong("difference of squares", (u, 0, -v), f"{times(u, f'{p}^2')} - {times(v, f'{q}^2')}")
    return draw


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
    draw = Draw(
        f"Factor ${poly}$ completely into linear factors. An expanded or partly factored form is not accepted.",
        "",
        ("product", k, frozenset((p, q))),
        f"Look for two numbers with sum ${s}$ and product ${m}$.",
        form="latex",
    )

    def f(r: int) -> str:
        return f"(x {plus(-r)})"

    draw.reference = f"{c}{f(p)}{f(q)}"
    draw.right(
        "factors",
        f"{c}{f(p)}{f(q)}",
        f"{c}{f(q)}{f(p)}",
        f"{c}\\left(x {plus(-p)}\\right)\\left(x {plus(-q)}\\right)",
        f"{c}{f(q)} \\cdot {f(p)}",
    )
    draw.right("turned factor", f"{c}({-p} + x)({-q} + x)", f"-{c}({p} - x){f(q)}")
    draw.right("equation", f"{poly} = {c}{f(p)}{f(q)}")
    draw.right("plain", f"{c}{f(p)}{f(q)}", f"{c + '*' if c else ''}{f(p)}*{f(q)}", form="plain")
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
            draw.wrong(kind, value, f"{cc}{f(u)}{f(v)}", f"{cc}{f(v)} \\cdot {f(u)}")
    draw.wrong("not factored", ("sum", k, s, m), poly)
    draw.wrong("half factored", ("half", k, s, m), f"{c}x(x {plus(-s)}) {plus(k * m)}" if s else f"{c}(x^2 {plus(m)})")
    draw.wrong("roots", ("roots", p, q), f"x = {p}, {q}", f"\\{{{p}, {q}\\}}")
    draw.wrong("one factor", ("one", p), f(p))
    return draw


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
