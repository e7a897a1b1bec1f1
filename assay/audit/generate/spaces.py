"""Vectors, intervals and their unions, values by name, ordered lists."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Interval
from assay.audit.generate.spell import linear_sum, nonzero, plain, proper, tex


@family("vectors", "vectors as columns, in angle brackets, with unit vectors; order and signs matter")
def vectors(rng: random.Random) -> Draw:
    size = rng.choice((2, 3, 3))
    gold = tuple(nonzero(rng, -9, 9) if rng.random() < 0.8 else 0 for _ in range(size))
    if not any(gold):
        gold = (1, *gold[1:])
    a = tuple(rng.randint(-6, 6) for _ in range(size))
    b = tuple(x - y for x, y in zip(gold, a, strict=True))

    def column(v: Sequence[int], name: str = "pmatrix") -> str:
        return rf"\begin{{{name}}} " + r" \\ ".join(map(str, v)) + rf" \end{{{name}}}"

    def units(v: Sequence[int], write: str) -> str:
        parts = []
        for value, letter in zip(v, "ijk", strict=False):
            if value:
                size_of = {1: "", -1: "-"}.get(value, str(value))
                parts.append(size_of + write.format(letter))
        return linear_sum(parts)

    draw = Draw(f"Find the sum of the vectors ${column(a)}$ and ${column(b)}$.", column(gold), gold)
    listed = ", ".join(map(str, gold))
    draw.right("column", column(gold), column(gold, "bmatrix"), form="latex")
    draw.right("angles", rf"\langle {listed} \rangle", rf"\left\langle {listed} \right\rangle", form="latex")
    draw.right("angles", f"<{listed}>", f"⟨{listed}⟩")
    draw.right("round brackets", f"({listed})", f"({listed.replace(' ', '')})")
    draw.right("square brackets", f"[{listed}]")
    draw.right(
        "unit vectors",
        units(gold, r"\mathbf{{{}}}"),
        units(gold, r"\hat{{{}}}"),
        units(gold, r"\vec{{{}}}"),
        form="latex",
    )
    draw.right("unit vectors", units(gold, "{}"))
    draw.right("row", rf"\begin{{pmatrix}} {' & '.join(map(str, gold))} \end{{pmatrix}}^T", form="latex")
    at = rng.randrange(size)
    for kind, value in (
        ("order", gold[::-1]),
        ("sign flipped", (*gold[:at], -gold[at], *gold[at + 1 :])),
        ("off by one", (*gold[:at], gold[at] + 1, *gold[at + 1 :])),
        ("negated", tuple(-v for v in gold)),
        ("one missing", gold[:-1]),
        ("difference", tuple(x - y for x, y in zip(a, b, strict=True))),
        ("first summand", a),
    ):
        shown = ", ".join(map(str, value))
        draw.wrong(kind, value, f"<{shown}>", f"({shown})")
        draw.wrong(kind, value, column(value), column(value, "bmatrix"), rf"\langle {shown} \rangle", form="latex")
        if any(value) and len(value) == size:
            draw.wrong(kind, value, units(value, r"\mathbf{{{}}}"), form="latex")
    draw.wrong("a number", ("number", sum(gold)), str(sum(gold)))
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


@family("named_values", "the values of several unknowns by name: the order of the equations is free, the names are not")
def named_values(rng: random.Random) -> Draw:
    first, second = rng.choice((("a", "b"), ("x", "y"), ("m", "n"), ("p", "q")))
    a, b = (Fraction(nonzero(rng, -12, 12)) if rng.random() < 0.8 else proper(rng, 7) for _ in range(2))
    if a == b:
        b += 1
    question = f"Solve the system ${first} + {second} = {tex(a + b)}$, ${first} - {second} = {tex(a - b)}$."
    draw = Draw(question, f"{first} = {tex(a)}, {second} = {tex(b)}", frozenset(((first, a), (second, b))))

    def texts(p: Fraction, q: Fraction) -> tuple[list[str], list[str]]:
        code = [
            f"{first} = {plain(p)}, {second} = {plain(q)}",
            f"{first}={plain(p)}, {second}={plain(q)}",
            f"{first} = {plain(p)} and {second} = {plain(q)}",
        ]
        code += [f"{second} = {plain(q)}, {first} = {plain(p)}", f"({first}, {second}) = ({plain(p)}, {plain(q)})"]
        latex = [rf"{first} = {tex(p)},\ {second} = {tex(q)}", rf"{first} = {tex(p)}, \quad {second} = {tex(q)}"]
        latex += [
            rf"({first}, {second}) = \left({tex(p)}, {tex(q)}\right)",
            rf"{first} = {tex(p)} \text{{ and }} {second} = {tex(q)}",
        ]
        latex += [rf"\begin{{cases}} {first} = {tex(p)} \\ {second} = {tex(q)} \end{{cases}}"]
        return code, latex

    code, latex = texts(a, b)
    draw.right("list", *code[:3])
    draw.right("other order", code[3])
    draw.right("pair", code[4])
    draw.right("latex", *latex, form="latex")
    for kind, p, q in (
        ("values swapped", b, a),
        ("sign flipped", -a, b),
        ("sign flipped", a, -b),
        ("off by one", a + 1, b),
        ("off by one", a, b - 1),
    ):
        code, latex = texts(p, q)
        value = frozenset(((first, p), (second, q)))
        draw.wrong(kind, value, *code)
        draw.wrong(kind, value, *latex, form="latex")
    draw.wrong("one missing", frozenset(((first, a),)), f"{first} = {plain(a)}")
    draw.wrong("sum", a + b, plain(a + b))
    return draw


WORDS = (
    "apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "juniper", "kiwi", "lemon",
    "mango", "nectarine", "olive",
)  # fmt: skip


@family(
    "ordered_lists", "lists whose order was asked for: sorted numbers or words; two swapped or one missing is wrong"
)
def ordered_lists(rng: random.Random) -> Draw:
    if rng.random() < 0.5:
        items = list(map(str, sorted(rng.sample(range(-30, 100), rng.randint(4, 7)))))
        ask = "Sort these numbers in increasing order: "
    else:
        items = sorted(rng.sample(WORDS, rng.randint(4, 6)))
        ask = "Sort these words alphabetically: "
    shuffled = items[:]
    while shuffled == items:
        rng.shuffle(shuffled)
    gold = tuple(items)
    draw = Draw(f"{ask}{', '.join(shuffled)}.", ", ".join(items), gold, verifier="list")

    def texts(values: Sequence[str]) -> list[str]:
        return [", ".join(values), ",".join(values), f"[{', '.join(values)}]", f"({', '.join(values)})"]

    draw.right("commas", *texts(items)[:2])
    draw.right("brackets", *texts(items)[2:])
    quoted = ", ".join(f'"{i}"' for i in items)
    if items[0].isalpha():
        draw.right("quoted", f"[{quoted}]", form="text")
    at = rng.randrange(len(items) - 1)
    swapped = [*items[:at], items[at + 1], items[at], *items[at + 2 :]]
    for kind, values in (
        ("two swapped", swapped),
        ("reversed", items[::-1]),
        ("one missing", items[:at] + items[at + 1 :]),
        ("one twice", [*items[: at + 1], *items[at:]]),
        ("as given", shuffled),
        ("last missing", items[:-1]),
        ("last one first", [items[-1], *items[:-1]]),
    ):
        draw.wrong(kind, tuple(values), *texts(values))
    return draw
