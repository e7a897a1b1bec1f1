"""Whether two query results are the same: multisets of rows, or sequences, with tolerance for floating point."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

Cell = Any
Row = tuple[Cell, ...]
Result = tuple[list[str], list[Row]]
MAX_TRIED = 2_000
"""Arrangements of columns that are tried where their order is free."""
MAX_MATCHED = 300
"""Rows alike but for their floating-point numbers that are matched exactly; more are compared in sorted order."""


def compare(
    got: Result,
    expected: Result,
    ordered: bool = False,
    columns: str = "ordered",
    names: bool = False,
    relative: float = 1e-6,
    absolute: float = 1e-9,
    duplicates: bool = True,
) -> dict[str, Any]:
    """Compare two results given as ``(column names, rows)``.

    Args:
        ordered: the order of rows counts.
        columns: ``"ordered"``, or ``"any"`` where columns may come in any order.
        names: column names have to agree, without regard to case.
        relative, absolute: tolerance of numbers of which one is a float or decimal.
        duplicates: how often a row comes counts.

    Returns:
        ``{"complaint": "" or the first difference, "columns": 1.0 or 0.0, "rows": the share of rows in common}``.
    """
    got_names, got_rows = [name.casefold() for name in got[0]], [tuple(map(plain, row)) for row in got[1]]
    names_wanted, wanted = [name.casefold() for name in expected[0]], [tuple(map(plain, row)) for row in expected[1]]
    width = len(wanted[0]) if wanted else len(names_wanted)
    if len(got_names) != width and (wanted or names_wanted):
        return _differs(f"returns {len(got_names)} columns, not {width}", columns=0.0)
    if names and sorted(got_names) != sorted(names_wanted):
        return _differs(f"names its columns {', '.join(got[0])[:60]}, not {', '.join(expected[0])[:60]}", columns=0.0)
    if names and columns == "ordered" and got_names != names_wanted:
        return _differs("has its columns in another order", columns=0.0)
    if not duplicates and not ordered:
        got_rows, wanted = list(dict.fromkeys(got_rows)), list(dict.fromkeys(wanted))
    same_names = names and columns == "any"
    orders = _arrangements(got_rows, wanted, width, got_names, names_wanted, same_names) if columns == "any" else [
        tuple(range(width))
    ]  # fmt: skip
    best, tolerance = 0.0, (relative, absolute)
    for order in orders:
        rows = [tuple(row[i] for i in order) for row in got_rows]
        if (_sequences if ordered else _multisets)(rows, wanted, tolerance):
            return {"complaint": "", "columns": 1.0, "rows": 1.0}
        best = max(best, _overlap(rows, wanted))
    if len(got_rows) != len(wanted):
        complaint = f"returns {len(got_rows)} rows, not {len(wanted)}"
    elif ordered and columns == "ordered" and _multisets(got_rows, wanted, tolerance):
        complaint = "returns the rows in another order"
    else:
        complaint = f"returns other rows{_example(got_rows, wanted)}"
    # Rows that differ only within the tolerance, or in their order, do not make it right.
    return _differs(complaint, rows=min(best, 0.99))


def _differs(complaint: str, columns: float = 1.0, rows: float = 0.0) -> dict[str, Any]:
    return {"complaint": complaint, "columns": columns, "rows": rows}


def plain(cell: Cell) -> Cell:
    """Return ``cell`` as something that can be hashed and compared: numbers as numbers, all else as text or None."""
    if cell is None or isinstance(cell, str | int):
        return int(cell) if isinstance(cell, bool) else cell
    if isinstance(cell, float):
        return "nan" if math.isnan(cell) else cell
    if isinstance(cell, Decimal):
        return float(cell) if cell.is_finite() else str(cell)
    if isinstance(cell, bytes | bytearray | memoryview):
        return ("blob", bytes(cell).hex())
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat(" ") if isinstance(cell, datetime.datetime) else cell.isoformat()
    return json.dumps(cell, default=str, sort_keys=True, ensure_ascii=False)


def _close(a: Cell, b: Cell, tolerance: tuple[float, float]) -> bool:
    if a == b:
        return True
    if not (isinstance(a, int | float) and isinstance(b, int | float)) or not (
        isinstance(a, float) or isinstance(b, float)
    ):
        return False
    try:
        return math.isclose(a, b, rel_tol=tolerance[0], abs_tol=tolerance[1])
    except OverflowError:
        return False


def _rows_close(a: Row, b: Row, tolerance: tuple[float, float]) -> bool:
    return all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _sequences(got: list[Row], wanted: list[Row], tolerance: tuple[float, float]) -> bool:
    return len(got) == len(wanted) and all(_rows_close(a, b, tolerance) for a, b in zip(got, wanted, strict=True))


def _multisets(got: list[Row], wanted: list[Row], tolerance: tuple[float, float]) -> bool:
    if len(got) != len(wanted):
        return False
    if Counter(got) == Counter(wanted):
        return True
    # Being close is not transitive, so rows that differ in floats only are matched rather than rounded.
    inexact = {i for row in (*got, *wanted) for i, cell in enumerate(row) if isinstance(cell, float)}
    if not inexact:
        return False
    groups: dict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((got, wanted)):
        for row in rows:
            groups[tuple(None if _number_in(i, c, inexact) else (c,) for i, c in enumerate(row))][side].append(row)
    return all(_matched(*sides, inexact=inexact, tolerance=tolerance) for sides in groups.values())


def _number_in(column: int, cell: Cell, inexact: set[int]) -> bool:
    return column in inexact and isinstance(cell, int | float)


def _matched(got: list[Row], wanted: list[Row], inexact: set[int], tolerance: tuple[float, float]) -> bool:
    if len(got) != len(wanted):
        return False

    def key(row: Row) -> list[float]:
        return [cell for i, cell in enumerate(row) if _number_in(i, cell, inexact)]

    got, wanted = sorted(got, key=key), sorted(wanted, key=key)
    if _sequences(got, wanted, tolerance):
        return True
    return len(got) <= MAX_MATCHED and _perfect_matching(
        [[j for j, b in enumerate(wanted) if _rows_close(a, b, tolerance)] for a in got]
    )


def _perfect_matching(options: Sequence[Sequence[int]]) -> bool:
    """Say whether each row can have an option of its own (augmenting paths, breadth first)."""
    owner: dict[int, int] = {}
    for start in range(len(options)):
        came: dict[int, int] = {}
        frontier, free = [start], None
        while frontier and free is None:
            row = frontier.pop()
            for option in options[row]:
                if option in came:
                    continue
                came[option] = row
                if option not in owner:
                    free = option
                    break
                frontier.append(owner[option])
        if free is None:
            return False
        held = {row: option for option, row in owner.items()}
        while True:
            row = came[free]
            owner[free] = row
            if row == start:
                break
            free = held[row]
    return True


def _arrangements(
    got: list[Row], wanted: list[Row], width: int, names: list[str], names_wanted: list[str], same_names: bool
) -> list[tuple[int, ...]]:
    """Return the orders of columns in which ``got`` may equal ``wanted``, as far as single columns tell."""

    def signature(rows: list[Row], i: int) -> tuple[int, ...]:
        # Exact cells are counted, numbers only how many they are: they may be close without being equal.
        texts = Counter(row[i] for row in rows if not isinstance(row[i], int | float))
        return (len(rows), hash(frozenset(texts.items())))

    mine, theirs = [signature(got, i) for i in range(width)], [signature(wanted, i) for i in range(width)]
    options = [
        [i for i in range(width) if mine[i] == theirs[j] and (not same_names or names[i] == names_wanted[j])]
        for j in range(width)
    ]
    found: list[tuple[int, ...]] = []
    pending: list[tuple[int, ...]] = [()]
    tried = 0
    while pending and len(found) < MAX_TRIED and tried < 50 * MAX_TRIED:
        tried += 1
        order = pending.pop()
        if len(order) == width:
            found.append(order)
        else:
            pending += [(*order, i) for i in reversed(options[len(order)]) if i not in order]
    return found


def _overlap(got: list[Row], wanted: list[Row]) -> float:
    """Return the F1 of exactly equal rows."""
    common = (Counter(got) & Counter(wanted)).total()
    return 2 * common / (len(got) + len(wanted)) if common else 0.0


def _example(got: list[Row], wanted: list[Row]) -> str:
    missing = next(iter(Counter(wanted) - Counter(got)), None)
    return "" if missing is None else f", e.g. lacks {str(missing)[:60]}"
