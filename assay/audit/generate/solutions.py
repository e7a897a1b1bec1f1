"""Solutions of equations and inequalities in one unknown: absolute values, squares, plus-minus."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import plus, tale


def two(a: int, b: int) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return ways to write two numbers in LaTeX (with kinds), in plain text and in words."""
    latex = [
        ("set", f"\\{{{a}, {b}\\}}"),
        ("in", f"x \\in \\{{{b}, {a}\\}}"),
        ("or", f"x = {a} \\text{{ or }} x = {b}"),
        ("list", f"x = {b},\\ x = {a}"),
        ("indices", f"x_1 = {a}, \\quad x_2 = {b}"),
        ("lor", f"x = {a} \\lor x = {b}"),
        ("both", f"x = {b}, {a}"),
    ]
    return (
        latex,
        [f"x = {a} or x = {b}", f"{b}, {a}", f"{{{a}; {b}}}", f"x₁ = {a}, x₂ = {b}"],
        [f"{a} and {b}", f"both {b} and {a}"],
    )


@family(
    "absolute_equation", "|x - a| = b: sets, `or`, indices, plus-minus; one solution, signs, the interval are wrong"
)
def absolute_equation(rng: random.Random) -> Draw:
    a, b = rng.choice([k for k in range(-9, 10) if k]), rng.randint(2, 14)
    if abs(a) == b:
        b += 1
    lo, hi = a - b, a + b
    t = tale(
        rng,
        f"Find all real solutions of $|x {plus(-a)}| = {b}$.",
        f"\\{{{lo}, {hi}\\}}",
        frozenset((lo, hi)),
        f"Either $x {plus(-a)} = {b}$ or $x {plus(-a)} = -{b}$.",
    )
    cases = (
        ("right", lo, hi),
        ("signs", -lo, -hi),
        ("off", lo, hi + 1),
        ("off", lo - 1, hi),
        ("only the bound", -b, b),
        ("half", a, hi),
    )
    for kind, p, q in cases:
        latex, plain, words = two(p, q)
        value = frozenset((p, q))
        if kind == "right":
            for k, text in latex:
                t.right(k, text)
            t.right("plain", *plain, form="plain")
            t.right("words", *words, form="text")
        elif value != t.draw.gold:
            t.wrong(kind, value, *(text for _, text in latex))
            t.wrong(kind, value, *plain, form="plain")
            t.wrong(kind, value, *words, form="text")
    t.right("plus-minus", f"x = {a} \\pm {b}", f"{a} \\pm {b}")
    t.right("plus-minus plain", f"x = {a} ± {b}", form="plain")
    t.wrong("plus-minus", frozenset((a + 1 - b, a + 1 + b)), f"x = {a + 1} \\pm {b}")
    t.wrong("plus-minus", frozenset((-a - b, -a + b)), f"{-a} \\pm {b}")
    for x in (lo, hi):
        t.wrong("one missing", frozenset((x,)), f"x = {x}", f"\\{{{x}\\}}")
        t.wrong("one missing", frozenset((x,)), f"{x}", f"only x = {x}", form="text")
    t.wrong("one more", frozenset((lo, a, hi)), f"\\{{{lo}, {a}, {hi}\\}}", f"x = {hi}, {lo}, {a}")
    t.wrong("all between", ("interval", lo, hi), f"[{lo}, {hi}]", f"{lo} \\le x \\le {hi}", f"{lo} < x < {hi}")
    t.wrong("none", frozenset(), "\\emptyset", "\\varnothing")
    return t.draw


@family("absolute_inequality", "|x - a| < b, >= b: chains, brackets, set-builder, complement; ends and sides matter")
def absolute_inequality(rng: random.Random) -> Draw:
    a, b = rng.choice([k for k in range(-9, 10) if k]), rng.randint(2, 12)
    lo, hi = a - b, a + b
    closed, outside = rng.random() < 0.5, rng.random() < 0.5
    sign = (("<", "\\le"), (">", "\\ge"))[outside][closed]

    def spell(lo: int, hi: int, closed: bool, outside: bool) -> tuple[list[str], list[str], list[str]]:
        le, ge, ule, uge = ("\\le", "\\ge", "≤", "≥") if closed else ("<", ">", "<", ">")
        if not outside:
            p, q = "[]" if closed else "()"
            return (
                [
                    f"{p}{lo}, {hi}{q}",
                    f"x \\in \\left{p}{lo}, {hi}\\right{q}",
                    f"{lo} {le} x {le} {hi}",
                    f"{hi} {ge} x {ge} {lo}",
                    f"\\{{x \\in \\mathbb{{R}} : {lo} {le} x {le} {hi}\\}}",
                    f"\\{{ x \\mid {lo} {le} x {le} {hi} \\}}",
                    f"x {ge} {lo} \\text{{ and }} x {le} {hi}",
                ],
                [f"{lo} {ule} x {ule} {hi}", f"{p}{lo}, {hi}{q}", f"x ∈ {p}{lo}, {hi}{q}"],
                [f"x {ule} {hi} and x {uge} {lo}"],
            )
        p, q = "][" if closed else ")("
        r, s = "()" if closed else "[]"
        return (
            [
                f"(-\\infty, {lo}{p} \\cup {q}{hi}, \\infty)",
                f"x \\in (-\\infty, {lo}{p} \\cup {q}{hi}, +\\infty)",
                f"x {le} {lo} \\text{{ or }} x {ge} {hi}",
                f"x {ge} {hi} \\ \\lor\\ x {le} {lo}",
                f"\\mathbb{{R}} \\setminus {r}{lo}, {hi}{s}",
                f"\\{{x : x {le} {lo} \\text{{ or }} x {ge} {hi}\\}}",
            ],
            [f"(-∞, {lo}{p} ∪ {q}{hi}, ∞)", f"x {ule} {lo} or x {uge} {hi}"],
            [f"x {uge} {hi} or x {ule} {lo}"],
        )

    gold = (lo, hi, closed, outside)
    t = tale(
        rng,
        f"Solve $|x {plus(-a)}| {sign} {b}$ over the real numbers.",
        spell(*gold)[0][0],
        gold,
        "Read the absolute value as a distance on the number line.",
    )
    for kind, value in (
        ("right", gold),
        ("ends", (lo, hi, not closed, outside)),
        ("side", (lo, hi, closed, not outside)),
        ("shift", (lo + 1, hi + 1, closed, outside)),
        ("signs", (-hi, -lo, closed, outside)),
        ("one end", (lo, hi + 1, closed, outside)),
        ("not shifted", (-b, b, closed, outside)),
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
    ge = "\\ge" if closed else ">"
    t.wrong("one side only", ("ray", hi), f"x {ge} {hi}")
    t.wrong("end points", ("set", lo, hi), f"\\{{{lo}, {hi}\\}}", f"x = {lo} \\text{{ or }} x = {hi}")
    return t.draw


@family(
    "between_squares",
    "a^2 <= x^2 <= b^2: unions of two bounded intervals in any order; one part or open ends are wrong",
)
def between_squares(rng: random.Random) -> Draw:
    a = rng.randint(1, 7)
    b = a + rng.randint(1, 6)
    closed = rng.random() < 0.5
    s = "\\le" if closed else "<"
    t = tale(
        rng,
        f"Solve ${a * a} {s} x^2 {s} {b * b}$ over the reals.",
        "",
        (a, b, closed),
        "Take roots and mind both signs of $x$.",
    )

    def spell(a: int, b: int, closed: bool) -> tuple[list[str], list[str]]:
        p, q = "[]" if closed else "()"
        le, u = ("\\le", "≤") if closed else ("<", "<")
        n, m = f"{p}{-b}, {-a}{q}", f"{p}{a}, {b}{q}"
        return (
            [
                f"{n} \\cup {m}",
                f"{m} \\cup {n}",
                f"x \\in {n} \\cup {m}",
                f"{-b} {le} x {le} {-a} \\text{{ or }} {a} {le} x {le} {b}",
                f"{a} {le} x {le} {b} \\ \\text{{or}}\\ {-b} {le} x {le} {-a}",
                f"{a} {le} |x| {le} {b}",
            ],
            [f"{n} ∪ {m}", f"{-b} {u} x {u} {-a} or {a} {u} x {u} {b}"],
        )

    t.draw.reference = spell(a, b, closed)[0][0]
    for kind, value in (
        ("right", (a, b, closed)),
        ("ends", (a, b, not closed)),
        ("not rooted", (a * a, b * b, closed)),
        ("off", (a, b + 1, closed)),
        ("off", (a - 1, b, closed)) if a > 1 else ("off", (a, b + 2, closed)),
    ):
        latex, plain = spell(*value)
        if kind == "right":
            for n, text in enumerate(latex[:5]):
                t.right(f"latex {n}", text)
            t.right("plain", *plain, form="plain")
        else:
            t.wrong(kind, value, *latex)
            t.wrong(kind, value, *plain, form="plain")
    p, q = "[]" if closed else "()"
    le = "\\le" if closed else "<"
    t.wrong("one part", ("one", a, b), f"{p}{a}, {b}{q}", f"{a} {le} x {le} {b}", f"x \\in {p}{-b}, {-a}{q}")
    t.wrong("the hull", ("hull", b), f"{p}{-b}, {b}{q}", f"{-b} {le} x {le} {b}")
    t.wrong("intersection", ("none",), f"{p}{-b}, {-a}{q} \\cap {p}{a}, {b}{q}")
    return t.draw


@family("plus_minus_roots", "x^2 = c: plus-minus, both roots by `or`, sets, code; one root, the wrong root are wrong")
def plus_minus_roots(rng: random.Random) -> Draw:
    k, r = rng.randint(2, 7), rng.choice((2, 3, 5, 6, 7, 10))
    c = k * k * r
    t = tale(
        rng,
        f"Solve $x^2 = {c}$ over the real numbers. Exact form, please.",
        f"\\pm {k}\\sqrt{{{r}}}",
        (k * k * r, "both"),
        f"Note that ${c} = {k * k} \\cdot {r}$.",
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

    latex, plain = spell(k, r)
    for n, text in enumerate(latex):
        t.right(f"latex {n}", text)
    t.right("plain", *plain, form="plain")
    t.right("not simplified", f"x = \\pm\\sqrt{{{c}}}", f"\\{{\\sqrt{{{c}}}, -\\sqrt{{{c}}}\\}}")
    for kind, p, q in (("factor", k + 1, r), ("exchanged", r, k), ("radicand", k, r + 1), ("squared factor", k * k, r)):
        latex, plain = spell(p, q)
        t.wrong(kind, (p * p * q, "both"), *latex)
        t.wrong(kind, (p * p * q, "both"), *plain, form="plain")
    s = f"{k}\\sqrt{{{r}}}"
    t.wrong("positive only", (c, "+"), s, f"x = {s}", f"x = \\sqrt{{{c}}}")
    t.wrong("negative only", (c, "-"), f"x = -{s}")
    t.wrong("positive only", (c, "+"), f"{k}√{r}", form="plain")
    t.wrong("imaginary", (-c, "both"), f"x = \\pm {s}\\,i", f"\\pm {s} i")
    t.wrong("zero as well", (c, "three"), f"\\{{-{s}, 0, {s}\\}}")
    return t.draw
