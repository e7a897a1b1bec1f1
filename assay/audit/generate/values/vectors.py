"""Points, vectors and matrices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    MINUS,
    linear_sum,
    nonzero,
    plain,
    proper,
    tex,
)


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
