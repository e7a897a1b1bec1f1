"""Several numbers in one answer: points, solution sets, matrices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import MINUS, nonzero, plain, proper, tex


def number(rng: random.Random) -> Fraction:
    """Return a coordinate: mostly a small integer."""
    return proper(rng, 9) if rng.random() < 0.25 else Fraction(rng.randint(-9, 9))


@family("points", "points of the plane and of space: brackets, spaces, coordinates by name; the order matters")
def points(rng: random.Random) -> Draw:
    size = rng.choice((2, 2, 3))
    gold = tuple(number(rng) for _ in range(size))
    step = tuple(Fraction(rng.randint(-5, 5)) for _ in range(size))
    names = "xyz"[:size]

    def latex(values: Sequence[Fraction], joint: str = ", ") -> str:
        return joint.join(map(tex, values))

    def code(values: Sequence[Fraction], joint: str = ", ") -> str:
        return joint.join(map(plain, values))

    question = (
        f"The point $({latex([g - s for g, s in zip(gold, step, strict=True)])})$ is moved by $({latex(step)})$. "
    )
    draw = Draw(question + "Find its new coordinates.", f"({latex(gold)})", gold)
    draw.right(
        "latex", f"({latex(gold)})", rf"\left({latex(gold)}\right)", rf"\left( {latex(gold, ',')} \right)", form="latex"
    )
    draw.right("latex", rf"\big({latex(gold)}\big)", "(" + latex(gold, r",\,") + ")", form="latex")
    draw.right("code", f"({code(gold)})", f"({code(gold, ',')})", f"( {code(gold, ' , ')} )")
    draw.right("by name", ", ".join(f"{n} = {plain(v)}" for n, v in zip(names, gold, strict=True)))
    draw.right("by name", f"({', '.join(names)}) = ({code(gold)})")
    draw.right("by name", r",\ ".join(f"{n} = {tex(v)}" for n, v in zip(names, gold, strict=True)), form="latex")
    draw.right("point", f"P({code(gold)})")
    if any(v < 0 for v in gold):
        draw.right("unicode minus", f"({code(gold)})".replace("-", MINUS))
    at = rng.randrange(size)

    def changed(value: Fraction) -> tuple[Fraction, ...]:
        return (*gold[:at], value, *gold[at + 1 :])

    for kind, values in (
        ("order", gold[::-1]),
        ("order", (gold[1], gold[0], *gold[2:])),
        ("sign flipped", changed(-gold[at])),
        ("off by one", changed(gold[at] + 1)),
        ("one missing", gold[:-1]),
        ("one extra", (*gold, Fraction(0))),
        ("all negated", tuple(-v for v in gold)),
    ):
        draw.wrong(kind, values, f"({code(values)})", f"({code(values, ',')})")
        draw.wrong(kind, values, rf"\left({latex(values)}\right)", f"({latex(values)})", form="latex")
    return draw


def product(roots: Sequence[int], letter: str) -> str:
    return "".join(letter if r == 0 else f"({letter} {'-' if r > 0 else '+'} {abs(r)})" for r in roots)


@family(
    "solution_sets", "all solutions of an equation: as a set, a list, `x = 1 or x = 2`, with indices, with plus-minus"
)
def solution_sets(rng: random.Random) -> Draw:
    letter = rng.choice("xtz")
    if rng.random() < 0.3:
        k = rng.randint(1, 12)
        roots = [-k, k]
    else:
        roots = sorted(rng.sample(range(-12, 13), rng.choice((2, 2, 2, 3))))
    gold = frozenset(roots)
    reference = rng.choice(((", ".join(map(str, roots))), r"\{" + ", ".join(map(str, roots)) + r"\}"))
    draw = Draw(f"Find all real solutions of ${product(roots, letter)} = 0$.", reference, gold)
    mixed = roots[:]
    rng.shuffle(mixed)

    def texts(kind: str, values: list[int], add: bool) -> None:
        listed = ", ".join(map(str, values))
        each = [f"{letter} = {v}" for v in values]
        plain_texts = [listed, ",".join(map(str, values))]
        latex_texts = [rf"\{{{listed}\}}", rf"\left\{{{listed}\right\}}", rf"{letter} \in \{{{listed}\}}"]
        if len(values) > 1:
            plain_texts += [f"{', '.join(map(str, values[:-1]))} and {values[-1]}"]
            plain_texts += [" or ".join(each), ", ".join(each), f"{letter} = {listed}"]
            latex_texts += [
                r" \text{ or } ".join(each),
                r",\ ".join(f"{letter}_{i} = {v}" for i, v in enumerate(values, 1)),
            ]
        else:
            plain_texts += each
        if add:
            draw.right(kind, *plain_texts)
            draw.right(f"{kind}, latex", *latex_texts, form="latex")
            draw.right(f"{kind}, braces", f"{{{listed}}}", form="text")
        else:
            draw.wrong(kind, frozenset(values), *plain_texts)
            draw.wrong(kind, frozenset(values), *latex_texts, form="latex")

    texts("in order", roots, True)
    if mixed != roots:
        texts("another order", mixed, True)
    if len(roots) == 2 and roots[0] == -roots[1]:
        draw.right("plus-minus", f"±{roots[1]}", f"{letter} = ±{roots[1]}", f"{letter}=±{roots[1]}")
        draw.right("plus-minus", rf"\pm {roots[1]}", rf"{letter} = \pm {roots[1]}", rf"\pm{roots[1]}", form="latex")
    else:
        root = max(abs(r) for r in roots)
        draw.wrong("plus-minus", frozenset((-root, root)), f"±{root}", f"{letter} = ±{root}")
        draw.wrong("plus-minus", frozenset((-root, root)), rf"\pm {root}", form="latex")
    at = rng.randrange(len(roots))
    texts("one missing", roots[:at] + roots[at + 1 :], False)
    extra = rng.choice([v for v in range(-13, 14) if v not in gold])
    texts("one extra", [*roots, extra], False)
    texts("one changed", [*roots[:at], extra, *roots[at + 1 :]], False)
    texts("signs flipped", [-r for r in roots], False)
    if len(roots) > 1:
        texts("one sign flipped", list(dict.fromkeys([*roots[:at], -roots[at], *roots[at + 1 :]])), False)
    draw.wrong("no solution", frozenset(), "no solution", "There are no real solutions")
    draw.wrong("no solution", frozenset(), r"\emptyset", form="latex")
    return draw


@family("matrices", "matrices in every LaTeX environment and as nested lists; a transpose is wrong")
def matrices(rng: random.Random) -> Draw:
    rows, columns = rng.choice(((2, 2), (2, 2), (2, 3), (3, 2), (3, 3)))
    gold = tuple(tuple(rng.randint(-9, 9) for _ in range(columns)) for _ in range(rows))
    part = tuple(tuple(rng.randint(-5, 5) for _ in range(columns)) for _ in range(rows))
    rest = tuple(tuple(g - p for g, p in zip(r, s, strict=True)) for r, s in zip(gold, part, strict=True))

    def latex(m: Sequence[Sequence[object]], name: str = "pmatrix", joint: str = r" \\ ", between: str = " & ") -> str:
        return rf"\begin{{{name}}} {joint.join(between.join(map(str, r)) for r in m)} \end{{{name}}}"

    def nested(m: Sequence[Sequence[object]], joint: str = ", ") -> str:
        return f"[{joint.join('[' + joint.join(map(str, r)) + ']' for r in m)}]"

    draw = Draw(f"Compute ${latex(rest)} + {latex(part)}$.", latex(gold), gold)
    draw.right("environment", latex(gold), latex(gold, "bmatrix"), latex(gold, "pmatrix", r"\\", "&"), form="latex")
    bare = latex(gold, "matrix")
    draw.right("delimiters", rf"\left( {bare} \right)", rf"\left[ {bare} \right]", form="latex")
    array = latex(gold, "array").replace(r"\begin{array}", rf"\begin{{array}}{{{'c' * columns}}}")
    draw.right("array", rf"\left( {array} \right)", rf"\left[ {array} \right]", form="latex")
    draw.right("line breaks", latex(gold, "pmatrix", " \\\\\n"), form="latex")
    draw.right("lists", nested(gold), nested(gold, ","))
    draw.right("named", f"A = {latex(gold, 'bmatrix')}", form="latex")
    i, j = rng.randrange(rows), rng.randrange(columns)

    def changed(value: int) -> tuple[tuple[int, ...], ...]:
        row = (*gold[i][:j], value, *gold[i][j + 1 :])
        return (*gold[:i], row, *gold[i + 1 :])

    for kind, value in (
        ("transposed", tuple(zip(*gold, strict=True))),
        ("sign flipped", changed(-gold[i][j])),
        ("off by one", changed(gold[i][j] + nonzero(rng, -1, 1))),
        ("rows swapped", gold[::-1]),
        ("row missing", gold[:-1]),
        ("the first summand", rest),
        ("negated", tuple(tuple(-v for v in r) for r in gold)),
    ):
        draw.wrong(kind, value, nested(value))
        draw.wrong(kind, value, latex(value), latex(value, "bmatrix"), form="latex")
    flat = tuple(v for row in gold for v in row)
    draw.wrong("flattened", flat, str(list(flat)))
    return draw
