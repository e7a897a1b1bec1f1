"""Inequalities, intervals and their unions."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Interval
from assay.audit.generate.spell import (
    nonzero,
    plain,
    plus,
    proper,
    tex,
)


def one_sided(letter: str, bound: str, low: bool, closed: bool, style: str) -> list[str]:
    """Return ``x > 3`` and ``3 < x`` in ``style``: code, unicode or latex."""
    sign = {"code": ("<=", ">="), "unicode": ("≤", "≥"), "latex": (r"\leq", r"\geq"), "short": (r"\le", r"\ge")}[style]
    less, more = sign if closed else ("<", ">")
    return (
        [f"{letter} {more} {bound}", f"{bound} {less} {letter}"]
        if low
        else [f"{letter} {less} {bound}", f"{bound} {more} {letter}"]
    )


@family("inequalities", "solution of a linear inequality, one or two sided, written from either side")
def inequalities(rng: random.Random) -> Draw:
    letter, closed = rng.choice("xyt"), rng.random() < 0.5
    bound = proper(rng) if rng.random() < 0.3 else Fraction(nonzero(rng, -15, 15))
    if rng.random() < 0.3:
        return chained(rng, letter)
    low, factor, shift = rng.random() < 0.5, rng.randint(2, 6), rng.randint(1, 9)
    gold = Interval(bound, None, closed, False) if low else Interval(None, bound, False, closed)
    sign = (r"\geq" if closed else ">") if low else (r"\leq" if closed else "<")
    side = tex(factor * bound + shift)
    reference = one_sided(letter, tex(bound), low, closed, "latex")[0]
    draw = Draw(f"Solve the inequality ${factor}{letter} + {shift} {sign} {side}$.", reference, gold)

    def add(kind: str, value: Interval, b: Fraction, lower: bool, c: bool) -> None:
        for style in ("code", "unicode", "latex", "short"):
            latex = style in ("latex", "short")
            texts = one_sided(letter, tex(b) if latex else plain(b), lower, c, style)
            texts = texts if c or style in ("code", "latex") else []
            draw.add(f"{kind}, {style}", value, *texts, form="latex" if latex else "plain")

    add("right", gold, bound, low, closed)
    draw.right("no spaces", one_sided(letter, plain(bound), low, closed, "code")[0].replace(" ", ""))

    def half(b: Fraction, lower: bool, c: bool) -> Interval:
        return Interval(b, None, c, False) if lower else Interval(None, b, False, c)

    add("direction flipped", half(bound, not low, closed), bound, not low, closed)
    add("end point open or closed", half(bound, low, not closed), bound, low, not closed)
    add("sign flipped", half(-bound, low, closed), -bound, low, closed)
    add("off by one", half(bound + 1, low, closed), bound + 1, low, closed)
    draw.wrong("equation", bound, f"{letter} = {plain(bound)}", plain(bound))
    return draw


def chained(rng: random.Random, letter: str) -> Draw:
    low = Fraction(rng.randint(-12, 8))
    high = low + rng.randint(2, 9)
    left, right, k = rng.random() < 0.5, rng.random() < 0.5, rng.randint(2, 5)

    def text(a: Fraction, b: Fraction, c: bool, d: bool, signs: tuple[str, str]) -> str:
        return f"{a} {signs[c]} {letter} {signs[d]} {b}"

    code, symbols, latex = ("<", "<="), ("<", "≤"), ("<", r"\leq")
    question = f"Solve ${k * low} {latex[left]} {k}{letter} {latex[right]} {k * high}$ for ${letter}$."
    draw = Draw(question, text(low, high, left, right, latex), Interval(low, high, left, right))
    draw.right("code", text(low, high, left, right, code), text(low, high, left, right, code).replace(" ", ""))
    draw.right("unicode", text(low, high, left, right, symbols))
    draw.right("latex", text(low, high, left, right, latex), text(low, high, left, right, ("<", r"\le")), form="latex")
    backwards = (">", ">=")
    draw.right("from the right", f"{high} {backwards[right]} {letter} {backwards[left]} {low}")
    lower = f"{letter} {backwards[left]} {low}"
    upper = f"{letter} {code[right]} {high}"
    draw.right("two parts", f"{lower} and {upper}")
    for kind, a, b, c, d in (
        ("end point open or closed", low, high, not left, right),
        ("end point open or closed", low, high, left, not right),
        ("off by one", low + 1, high, left, right),
        ("off by one", low, high - 1, left, right),
        ("ends negated", -high, -low, left, right),
    ):
        value = Interval(a, b, c, d)
        draw.wrong(kind, value, text(a, b, c, d, code), text(a, b, c, d, symbols))
        draw.wrong(kind, value, text(a, b, c, d, latex), form="latex")
    draw.wrong("one side only", Interval(low, None, left, False), lower)
    draw.wrong("outside", ("outside", low, high), f"{letter} < {low} or {letter} > {high}")
    return draw


def bracket(low: str, high: str, left: bool, right: bool, latex: bool) -> str:
    """Return ``[low, high)``."""
    opening, closing = "[" if left else "(", "]" if right else ")"
    if latex:
        return rf"\left{opening}{low}, {high}\right{closing}"
    return f"{opening}{low}, {high}{closing}"


@family(
    "intervals",
    "solution sets as intervals or inequalities, brackets turned outwards; an end point open or closed matters",
)
def intervals(rng: random.Random) -> Draw:
    low = proper(rng) if rng.random() < 0.25 else Fraction(rng.randint(-12, 10))
    high = low + rng.randint(1, 9)
    left, right = rng.random() < 0.5, rng.random() < 0.5
    shape = rng.choice(("bounded", "bounded", "from", "to"))
    if shape == "from":
        gold = Interval(low, None, left, False)
        sign = r"\geq" if left else ">"
        question = f"Give the solution set of $2x {sign} {tex(2 * low)}$ in interval notation or as an inequality."
    elif shape == "to":
        gold = Interval(None, high, False, right)
        sign = r"\leq" if right else "<"
        question = f"Give the solution set of $3x {sign} {tex(3 * high)}$ in interval notation or as an inequality."
    else:
        gold = Interval(low, high, left, right)
        a, b = r"\leq" if left else "<", r"\leq" if right else "<"
        question = (
            f"For which $x$ is ${tex(low + 1)} {a} x + 1 {b} {tex(high + 1)}$? Give an interval or an inequality."
        )

    def texts(value: Interval) -> tuple[list[str], list[str], list[str]]:
        """Return plain intervals, LaTeX ones, and inequalities."""
        l_code = "-inf" if value.low is None else plain(value.low)
        h_code = "inf" if value.high is None else plain(value.high)
        l_tex = r"-\infty" if value.low is None else tex(value.low)
        h_tex = r"\infty" if value.high is None else tex(value.high)
        ends = (value.low_closed, value.high_closed)
        code = bracket(l_code, h_code, *ends, False)
        plains = [code, code.replace(", ", ","), code.replace("inf", "∞"), f"x ∈ {code.replace('inf', '∞')}"]
        turned = ("[" if ends[0] else "]") + f"{l_tex}, {h_tex}" + ("]" if ends[1] else "[")
        latex = [
            bracket(l_tex, h_tex, *ends, True),
            bracket(l_tex, h_tex, *ends, True).replace(r"\left", "").replace(r"\right", ""),
        ]
        latex += [rf"x \in {latex[1]}", turned]
        less = ("<", r"\le"), ("<", "<=")
        if value.low is None:
            inequality = [
                f"x {less[1][ends[1]]} {plain(value.high or 0)}",
                f"x {less[0][ends[1]]} {tex(value.high or 0)}",
            ]
        elif value.high is None:
            inequality = [f"{plain(value.low)} {less[1][ends[0]]} x", f"{tex(value.low)} {less[0][ends[0]]} x"]
        else:
            inequality = [
                f"{plain(value.low)} {less[1][ends[0]]} x {less[1][ends[1]]} {plain(value.high)}",
                f"{tex(value.low)} {less[0][ends[0]]} x {less[0][ends[1]]} {tex(value.high)}",
            ]
        return plains, latex, inequality

    plains, latex, inequality = texts(gold)
    draw = Draw(question, latex[1], gold)
    draw.right("interval", *plains)
    draw.right("latex", *latex[:3], form="latex")
    draw.right("brackets turned outwards", latex[3], form="latex")
    draw.right("inequality", inequality[0])
    draw.right(
        "inequality, latex",
        inequality[1],
        rf"\{{x \mid {inequality[1]}\}}",
        rf"\{{x \in \mathbb{{R}} : {inequality[1]}\}}",
        form="latex",
    )

    def wrong(kind: str, value: Interval) -> None:
        p, t, i = texts(value)
        draw.wrong(kind, value, p[0], p[1], i[0])
        draw.wrong(kind, value, t[0], t[1], i[1], form="latex")

    if gold.low is not None:
        wrong("end point open or closed", Interval(gold.low, gold.high, not gold.low_closed, gold.high_closed))
        wrong("an end off by one", Interval(gold.low - 1, gold.high, gold.low_closed, gold.high_closed))
        wrong("unbounded", Interval(None, gold.high if gold.high is not None else gold.low, False, gold.high_closed))
    if gold.high is not None:
        wrong("end point open or closed", Interval(gold.low, gold.high, gold.low_closed, not gold.high_closed))
        wrong("an end off by one", Interval(gold.low, gold.high + 1, gold.low_closed, gold.high_closed))
        wrong("unbounded", Interval(gold.low if gold.low is not None else gold.high, None, gold.low_closed, False))
    if gold.low is not None and gold.high is not None:
        wrong("ends negated", Interval(-gold.high, -gold.low, gold.high_closed, gold.low_closed))
        listed = (gold.low, gold.high)
        draw.wrong("a set of two", listed, rf"\{{{tex(low)}, {tex(high)}\}}", form="latex")
    return draw


@family("unions", "unions of two rays: the cup, `or`, the complement; the inside is wrong")
def unions(rng: random.Random) -> Draw:
    low = rng.randint(-12, 6)
    high = low + rng.randint(2, 9)
    closed = rng.random() < 0.5
    sign = r"\geq" if closed else ">"
    gold = frozenset((Interval(None, Fraction(low), False, closed), Interval(Fraction(high), None, closed, False)))
    factors = "".join("x" if r == 0 else f"(x {-r:+d})" for r in (low, high))
    left, right = ("[", "]") if closed else ("(", ")")

    def cup(a: int, b: int, o: str, c: str) -> tuple[list[str], list[str]]:
        rays = f"(-inf, {a}{c}", f"{o}{b}, inf)"
        plains = [f"{rays[0]} U {rays[1]}", f"{rays[0]} ∪ {rays[1]}".replace("inf", "∞")]
        latex = [
            rf"(-\infty, {a}{c} \cup {o}{b}, \infty)",
            rf"\left(-\infty, {a}\right{c} \cup \left{o}{b}, \infty\right)",
        ]
        return plains, latex

    plains, latex = cup(low, high, left, right)
    draw = Draw(f"Solve ${factors} {sign} 0$ over the real numbers.", latex[0], gold)
    less, more = ("<=", ">=") if closed else ("<", ">")
    less_tex, more_tex = (r"\leq", r"\geq") if closed else ("<", ">")
    draw.right("cup", *plains)
    draw.right("cup, latex", *latex, rf"x \in {latex[0]}", form="latex")
    draw.right("or", f"x {less} {low} or x {more} {high}", f"x {more} {high} or x {less} {low}")
    draw.right(
        "or, latex",
        rf"x {less_tex} {low} \text{{ or }} x {more_tex} {high}",
        rf"x {less_tex} {low} \lor x {more_tex} {high}",
        form="latex",
    )
    draw.right("other order", rf"{left}{high}, \infty) \cup (-\infty, {low}{right}", form="latex")
    inner = f"({low}, {high})" if closed else f"[{low}, {high}]"
    draw.right("complement", rf"\mathbb{{R}} \setminus {inner}", form="latex")

    def rays(a: int, b: int, c: bool) -> frozenset[Interval]:
        return frozenset((Interval(None, Fraction(a), False, c), Interval(Fraction(b), None, c, False)))

    other = ("(", ")") if closed else ("[", "]")
    for kind, value, shown in (
        ("end points open or closed", rays(low, high, not closed), cup(low, high, *other)),
        ("an end off by one", rays(low - 1, high, closed), cup(low - 1, high, left, right)),
        ("an end off by one", rays(low, high + 1, closed), cup(low, high + 1, left, right)),
    ):
        draw.wrong(kind, value, *shown[0])
        draw.wrong(kind, value, *shown[1], form="latex")
    inside = Interval(Fraction(low), Fraction(high), closed, closed)
    draw.wrong("inside", inside, f"{left}{low}, {high}{right}", f"{low} {less} x {less} {high}")
    draw.wrong("one ray", Interval(Fraction(high), None, closed, False), f"{left}{high}, inf)", f"x {more} {high}")
    draw.wrong("and for or", frozenset(), f"x {less} {low} and x {more} {high}")
    return draw


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
    draw = Draw(
        f"Solve $|x {plus(-a)}| {sign} {b}$ over the real numbers.",
        spell(*gold)[0][0],
        gold,
        "Read the absolute value as a distance on the number line.",
        form="latex",
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
        draw.spell(kind, value, plain, latex, words)
    ge = "\\ge" if closed else ">"
    draw.wrong("one side only", ("ray", hi), f"x {ge} {hi}")
    draw.wrong("end points", ("set", lo, hi), f"\\{{{lo}, {hi}\\}}", f"x = {lo} \\text{{ or }} x = {hi}")
    return draw
