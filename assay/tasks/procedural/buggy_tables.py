"""Tables that were damaged in a way that is told, and a question about what they said before."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Cells = list[list[str]]
NAMES = ("speed", "weight", "price", "height", "age", "score")
MEASURES: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "mean": statistics.mean, "median": statistics.median, "sum": lambda x: sum(x, Fraction(0)), "largest value": max,
    "smallest value": min,
}  # fmt: skip


def buggy_tables(rng: np.random.Generator, level: int) -> tuple[str, dict[str, Any], str]:
    """4 + level rows of 3 + level // 4 columns, damaged by one of :data:`BUGS`; what is asked is a difference.

    |m(column a) - m(column b)| over the rows in which column c is above or below a bound, for a measure m; cells that
    are null count for nothing, and rows whose c is null are left out.
    """
    columns, names = 3 + level // 4, list(NAMES[: 3 + level // 4])
    while True:
        numbers, gone = rng.integers(1, 100, (4 + level, columns)).tolist(), rng.random((4 + level, columns)) < 0.1
        table = [[None if gone[r, c] else x for c, x in enumerate(row)] for r, row in enumerate(numbers)]
        a, b, c = rng.permutation(columns)[:3].tolist()
        bound, above = int(rng.integers(20, 80)), bool(rng.integers(2))
        kept = [row for row in table if (x := row[c]) is not None and (x > bound if above else x < bound)]
        first, second = ([Fraction(x) for row in kept if (x := row[k]) is not None] for k in (a, b))
        if first and second:
            break
    measure = list(MEASURES)[int(rng.integers(len(MEASURES)))]
    value = abs(MEASURES[measure](first) - MEASURES[measure](second))
    bug = list(BUGS)[int(rng.integers(len(BUGS)))]
    cells, how = BUGS[bug](rng, [["null" if x is None else str(x) for x in row] for row in table])
    head = [*names, "note"][: max(len(row) for row in cells)]
    lines = "\n".join(" | ".join(row) for row in [head, *cells])
    told = (
        f"This table was damaged as it was written down: {how}\n{lines}\nTake it as it was before. Over the rows in "
        f"which {names[c]} is {'above' if above else 'below'} {bound}, what is the absolute difference between the "
        f"{measure} of {names[a]} and that of {names[b]}? Cells that are null count for nothing, and a row whose "
        f"{names[c]} is null is left out. Round to two decimals."
    )
    return told, {"value": str(value)}, f"{float(value):.2f}"


def with_errors(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """A sixth of the cells, one at least, is hidden and told."""
    count = len(table) * len(table[0])
    places = sorted(divmod(i, len(table)) for i in rng.permutation(count)[: max(1, count // 6)].tolist())
    hidden = [table[r][c] for c, r in places]
    cells = [["ERROR" if (c, r) in places else x for c, x in enumerate(row)] for r, row in enumerate(table)]
    return cells, f"some cells say ERROR; column after column, each from top to bottom, they said {', '.join(hidden)}."


def merged(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """Two rows are in one."""
    pairs = [table[i : i + 2] for i in range(0, len(table), 2)]
    cells = [[" && ".join(column) for column in zip(*pair, strict=True)] for pair in pairs]
    return cells, "each two rows became one, with && between the cell of the first and that of the second."


def turned_columns(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """Column k, from 0, is moved down by k."""
    cells = [[table[(r - c) % len(table)][c] for c in range(len(row))] for r, row in enumerate(table)]
    return cells, (
        "the cells of the second column were moved down by one row, those of the third by two, and so on; what fell "
        "off at the bottom came in again at the top."
    )


def turned_rows(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """Row k, from 0, is moved right by k."""
    cells = [[row[(c - r) % len(row)] for c in range(len(row))] for r, row in enumerate(table)]
    return cells, (
        "the cells of the second row were moved right by one column, those of the third by two, and so on; what fell "
        "off at the right came in again at the left."
    )


def with_row(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """A row that is none of the table."""
    last = [str(x) for x in rng.integers(1, 100, len(table[0])).tolist()]
    return [*table, last], "a last row was added that is not of it."


def with_column(rng: np.random.Generator, table: Cells) -> tuple[Cells, str]:
    """A first column of numbers before all others, which push the heads to the right."""
    cells = [[str(int(rng.integers(1, 100))), *row] for row in table]
    return cells, "a first column was added that is not of it, so that each head stands one column too far to the left."


BUGS: dict[str, Callable[[np.random.Generator, Cells], tuple[Cells, str]]] = {
    "errors": with_errors, "merged": merged, "columns": turned_columns, "rows": turned_rows, "row": with_row,
    "column": with_column,
}  # fmt: skip
"""What may have happened to a table of cells as text: the damaged one, and how that is told."""
