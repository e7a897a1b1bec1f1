"""Answers of several parts: systems of equations, lists, complex numbers, matrices; and a story with one unknown."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import plus, tale
from assay.audit.generate.spell import tex, times


@family("linear_system", "two linear equations: a pair, equations, cases; exchanged, one value only, signs are wrong")
def linear_system(rng: random.Random) -> Draw:
    x, y = rng.sample([k for k in range(-9, 10) if k], 2)
    if x == -y:
        y += 20
    a, b, c, d = 2, rng.randint(1, 5), rng.randint(3, 7), -1
    t = tale(
        rng,
        f"Solve the system ${a}x + {times(b, 'y')} = {a * x + b * y}$, ${c}x - y = {c * x + d * y}$. Answer with $(x,"
        " y)$.",
        f"({x}, {y})",
        (x, y),
        f"The second equation gives $y = {c}x {plus(-(c * x - y))}$; substitute that into the first one.",
    )

    def spell(x: int, y: int) -> tuple[list[str], list[str], list[str]]:
        return (
            [
                f"({x}, {y})",
                f"(x, y) = ({x}, {y})",
                f"\\left( {x}, {y} \\right)",
                f"x = {x},\\ y = {y}",
                f"x = {x} \\text{{ and }} y = {y}",
                f"\\begin{{cases}} x = {x} \\\\ y = {y} \\end{{cases}}",
                f"\\{{({x}, {y})\\}}",
                f"(x; y) = ({x}; {y})",
            ],
            [f"({x}, {y})", f"x = {x}, y = {y}", f"(x, y) = ({x}, {y})"],
            [f"x = {x} and y = {y}", f"y is {y} and x is {x}"],
        )

    for kind, value in (
        ("right", (x, y)),
        ("exchanged", (y, x)),
        ("sign", (-x, y)),
        ("sign", (x, -y)),
        ("off", (x + 1, y)),
        ("off", (x, y - 1)),
    ):
        latex, plain, words = spell(*value)
        if kind == "right":
            for n, text in enumerate(latex):
                t.right(f"latex {n}", text)
            t.right("plain", *plain, form="plain")
            t.right("words", *words, form="text")
        else:
            t.wrong(kind, value, *latex)
            t.wrong(kind, value, *plain, form="plain")
            t.wrong(kind, value, *words, form="text")
    t.wrong("one value", (x,), f"x = {x}", str(x))
    t.wrong("one value", (y,), f"y = {y}")
    t.wrong("sum", ("sum", x + y), f"x + y = {x + y}")
    return t.draw


@family(
    "number_lists",
    "all numbers with a property: sets, lists with `and`, bullets, any order; the count, one more are wrong",
)
def number_lists(rng: random.Random) -> Draw:
    if rng.random() < 0.5:
        n = rng.choice((18, 20, 28, 32, 44, 45, 50, 52, 63, 68, 75, 76, 92, 98))
        found = [d for d in range(1, n + 1) if n % d == 0]
        question, work = (
            f"List all positive divisors of {n}.",
            "We test every integer up to the square root; divisors come in pairs.",
        )
    else:
        lo = rng.randint(10, 60)
        found = [p for p in range(lo, lo + 22) if all(p % k for k in range(2, p))]
        question, work = (
            f"Which prime numbers lie between {lo} and {lo + 21}, both included?",
            "We sieve by 2, 3, 5 and 7.",
        )
    t = tale(rng, question, "\\{" + ", ".join(map(str, found)) + "\\}", frozenset(found), work)

    def add(kind: str, numbers: list[int]) -> None:
        shuffled = rng.sample(numbers, len(numbers))
        for order in (numbers, shuffled):
            plain = ", ".join(map(str, order))
            latex = [
                f"\\{{{plain}\\}}",
                f"\\left\\{{ {', '.join(map(str, order))} \\right\\}}",
                "\\{" + ",\\, ".join(map(str, order)) + "\\}",
            ]
            texts = [
                plain,
                " and ".join((", ".join(map(str, order[:-1])), str(order[-1]))),
                ", ".join(f"${k}$" for k in order),
            ]
            bullets = work + "\n\n**Final answer:**\n" + "".join(f"\n- {k}" for k in order)
            if kind == "right":
                t.right("set", *latex)
                t.right("listed", *texts, form="text")
                t.draw.right("bullets", bullets, form="whole", said=plain)
            else:
                t.wrong(kind, frozenset(numbers), *latex)
                t.wrong(kind, frozenset(numbers), *texts, form="text")
                t.draw.wrong(kind, frozenset(numbers), bullets, form="whole", said=plain)

    add("right", found)
    i = rng.randrange(len(found))
    add("one missing", found[:i] + found[i + 1 :]) if len(found) > 2 else None
    extra = next(k for k in range(found[-1] // 2 + 1, found[-1] + 9) if k not in found)
    add("one more", sorted([*found, extra]))
    add("one other", sorted([*found[:i], extra, *found[i + 1 :]]))
    t.wrong("count", ("count", len(found)), str(len(found)), form="plain")
    t.wrong("sum", ("sum", sum(found)), str(sum(found)), form="plain")
    return t.draw


@family("polar", "a quotient by 1-i, polar or rectangular: e, cis, degrees; conjugate, argument, modulus are wrong")
def polar(rng: random.Random) -> Draw:
    k, quadrant = rng.randint(2, 9), rng.choice((1, 3, 5, 7))  # argument quadrant * pi / 4
    u, v = {1: (1, 1), 3: (-1, 1), 5: (-1, -1), 7: (1, -1)}[quadrant]
    t = tale(
        rng,
        f"Solve $(1 - i)\\,z = {2 * k * (u + v) // 2}{'+' if v - u >= 0 else '-'}{abs(k * (v - u))}i$. Rectangular and"
        " polar form are both fine; exact.",
        f"{k * u}{'+' if v > 0 else '-'}{k}i",
        (k * u, k * v),
        "Multiply both sides by $1 + i$ and divide by $2$.",
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
        if kind == "right":
            for n, text in enumerate(latex):
                t.right(f"latex {n}", text, value=(kk * uu, kk * vv))
            t.right("plain", *plain, form="plain")
        else:
            t.wrong(kind, (kk * uu, kk * vv), *latex)
            t.wrong(kind, (kk * uu, kk * vv), *plain, form="plain")
    t.wrong("modulus without root", ("polar", k, quadrant), f"{k} e^{{{quadrant}\\pi i/4}}")
    t.wrong("only the modulus", ("number", k), f"{k}\\sqrt{{2}}")
    return t.draw


@family(
    "matrix_layouts",
    "a product of matrices: environments, arrays, line breaks, nested lists, semicolons; transposed, signs are wrong",
)
def matrix_layouts(rng: random.Random) -> Draw:
    while True:
        a = [[rng.randint(-4, 5) for _ in range(2)] for _ in range(2)]
        b = [[rng.randint(-4, 5) for _ in range(2)] for _ in range(2)]
        c = [[sum(a[i][k] * b[k][j] for k in range(2)) for j in range(2)] for i in range(2)]
        d = [[sum(b[i][k] * a[k][j] for k in range(2)) for j in range(2)] for i in range(2)]
        if c[0][1] != c[1][0] and c != d and all(x for row in c for x in row):
            break

    def layout(m: list[list[int]], env: str = "pmatrix") -> str:
        return f"\\begin{{{env}}} " + " \\\\ ".join(" & ".join(map(str, row)) for row in m) + f" \\end{{{env}}}"

    gold = tuple(map(tuple, c))
    t = tale(
        rng,
        f"Compute the product ${layout(a)} \\cdot {layout(b)}$.",
        layout(c),
        gold,
        "Each entry is a row of the first times a column of the second.",
    )

    def spell(m: list[list[int]]) -> tuple[list[str], list[str]]:
        (p, q), (r, s) = m
        return (
            [
                layout(m),
                layout(m, "bmatrix"),
                f"\\left(\\begin{{array}}{{cc}}{p}&{q}\\\\{r}&{s}\\end{{array}}\\right)",
                f"\\left[ {layout(m, 'matrix')} \\right]",
                f"AB = {layout(m, 'bmatrix')}",
                f"\\begin{{bmatrix}}\n{p} & {q} \\\\\n{r} & {s}\n\\end{{bmatrix}}",
                f"\\begin{{pmatrix}}\\,{p} & \\,{q}\\\\[4pt] {r} & {s}\\end{{pmatrix}}",
                f"\\bigl(\\begin{{smallmatrix}} {p} & {q} \\\\ {r} & {s} \\end{{smallmatrix}}\\bigr)",
            ],
            [f"[[{p}, {q}], [{r}, {s}]]", f"[{p} {q}; {r} {s}]", f"[[{p},{q}],[{r},{s}]]"],
        )

    flip = [row[:] for row in c]
    i, j = rng.randrange(2), rng.randrange(2)
    flip[i][j] = -flip[i][j]
    off = [row[:] for row in c]
    off[j][i] += rng.choice((-1, 1))
    entry = [[a[i][j] * b[i][j] for j in range(2)] for i in range(2)]
    for kind, m in (
        ("right", c),
        ("transposed", [list(col) for col in zip(*c, strict=True)]),
        ("sign", flip),
        ("entry", off),
        ("other order", d),
        ("entry by entry", entry),
        ("rows exchanged", c[::-1]),
    ):
        latex, plain = spell(m)
        if kind == "right":
            for n, text in enumerate(latex):
                t.right(f"latex {n}", text)
            t.right("plain", *plain, form="plain")
        else:
            t.wrong(kind, tuple(map(tuple, m)), *latex)
            t.wrong(kind, tuple(map(tuple, m)), *plain, form="plain")
    det = c[0][0] * c[1][1] - c[0][1] * c[1][0]
    t.wrong("determinant", ("number", det), str(det), form="plain")
    t.wrong("one row", ("row", *c[0]), f"\\begin{{pmatrix}} {c[0][0]} & {c[0][1]} \\end{{pmatrix}}")
    return t.draw


@family(
    "word_equation",
    "one unknown from a story, a fraction of an hour: equation, fraction, mixed number; the wrong unknown is wrong",
)
def word_equation(rng: random.Random) -> Draw:
    a, b = rng.choice(((2, 3), (3, 4), (3, 6), (4, 6), (5, 20), (4, 12), (2, 5), (3, 5), (4, 5), (5, 7), (3, 8)))
    x = Fraction(a * b, a + b)
    t = tale(
        rng,
        f"One pump fills a pool in {a} hours, another one in {b} hours. How many hours do both take together? Exact"
        " value.",
        tex(x),
        x,
        f"Together they fill $\\frac1{{{a}}} + \\frac1{{{b}}}$ of the pool per hour.",
    )
    n, r = divmod(x.numerator, x.denominator)
    t.right("fraction", tex(x), f"t = {tex(x)}", f"{tex(x)} \\text{{ hours}}", f"{tex(x, 'dfrac')}\\,\\mathrm{{h}}")
    if r:
        t.right(
            "mixed", f"{n}\\frac{{{r}}}{{{x.denominator}}}", f"{n}\\tfrac{{{r}}}{{{x.denominator}}} \\text{{ hours}}"
        )
        t.right("sum", f"{n} + \\frac{{{r}}}{{{x.denominator}}}")
    t.right("plain", str(x), f"{x} hours", f"t = {x} h", form="plain")
    for kind, v in (
        ("average", Fraction(a + b, 2)),
        ("sum", Fraction(a + b)),
        ("rate", 1 / x),
        ("difference", Fraction(b - a)),
        ("off", x + 1),
        ("off", x - Fraction(1, 7)),
        ("product", Fraction(a * b)),
    ):
        t.wrong(kind, v, tex(v), f"{tex(v)} \\text{{ hours}}")
        t.wrong(kind, v, str(v), f"{v} hours", form="plain")
    t.wrong("minutes", x / 60, f"{tex(x)} \\text{{ minutes}}")
    return t.draw
