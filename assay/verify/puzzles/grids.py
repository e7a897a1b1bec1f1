"""Puzzles on grids by their rules: whatever grid keeps to them is right, whether or not it is the one thought of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.verify.text.exact import shorten

Grid = list[list[str]]
Cell = tuple[int, int]
Rules = Callable[[Grid, Mapping[str, Any]], str]
"""From a grid of the right shape and a puzzle's data to what is wrong first; empty where nothing is."""
MARK, BLANK = "X", "."


def around(cell: Cell, rows: int, columns: int, diagonal: bool = False) -> list[Cell]:
    """Return the cells beside one, those at its corners too if ``diagonal``."""
    steps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a or b) and (diagonal or not a * b)]
    near = [(cell[0] + a, cell[1] + b) for a, b in steps]
    return [(r, c) for r, c in near if 0 <= r < rows and 0 <= c < columns]


def _cells(grid: Grid) -> list[Cell]:
    return [(r, c) for r, row in enumerate(grid) for c in range(len(row))]


def _marked(grid: Grid, mark: str = MARK) -> list[Cell]:
    return [(r, c) for r, c in _cells(grid) if grid[r][c] == mark]


def _only(grid: Grid, allowed: str) -> str:
    wrong = next(((r, c) for r, c in _cells(grid) if grid[r][c] not in tuple(allowed)), None)
    return "" if wrong is None else f"{shorten(grid[wrong[0]][wrong[1]], 20)!r} is none of {' '.join(allowed)}"


def _latin(grid: Grid) -> str:
    size, known = len(grid), {str(i + 1) for i in range(len(grid))}
    for kind, lines in (("row", grid), ("column", list(zip(*grid, strict=True)))):
        for i, line in enumerate(lines):
            if set(line) != known:
                return f"{kind} {i + 1} does not hold 1 to {size} once each"
    return ""


def _counts(grid: Grid, data: Mapping[str, Any], mark: str = MARK) -> str:
    for kind, lines, wanted in (
        ("row", grid, data["rows"]),
        ("column", list(zip(*grid, strict=True)), data["columns"]),
    ):
        for i, (line, count) in enumerate(zip(lines, wanted, strict=True)):
            if line.count(mark) != count:
                return f"{kind} {i + 1} has {line.count(mark)} of {mark}, not {count}"
    return ""


def visible(line: Sequence[int]) -> int:
    """Return how many numbers of a line are larger than all before them."""
    return sum(all(x > y for y in line[:i]) for i, x in enumerate(line))


def skyscraper(grid: Grid, data: Mapping[str, Any]) -> str:
    """A Latin square; ``top``, ``bottom``, ``left`` and ``right`` say how many are seen from there."""
    if fault := _latin(grid):
        return fault
    rows = [[int(x) for x in row] for row in grid]
    columns = [list(column) for column in zip(*rows, strict=True)]
    for side, lines in (
        ("left", rows),
        ("right", [r[::-1] for r in rows]),
        ("top", columns),
        ("bottom", [c[::-1] for c in columns]),
    ):
        for i, (line, clue) in enumerate(zip(lines, data[side], strict=True)):
            if clue and visible(line) != clue:
                return f"{visible(line)} are seen from the {side} at {i + 1}, not {clue}"
    return ""


def calcudoko(grid: Grid, data: Mapping[str, Any]) -> str:
    """A Latin square; each of ``cages`` is cells, an operation and the value that it gives."""
    if fault := _latin(grid):
        return fault
    for cells, operation, value in data["cages"]:
        if worked(operation, [int(grid[r][c]) for r, c in cells]) != value:
            return f"the cage at row {cells[0][0] + 1}, column {cells[0][1] + 1} does not give {value}{operation}"
    return ""


def worked(operation: str, numbers: Sequence[int]) -> int | None:
    """Return what a cage's numbers give; of two, the larger one is first."""
    if operation in "+*":
        return sum(numbers) if operation == "+" else math.prod(numbers)
    large, small = max(numbers), min(numbers)
    if operation == "-":
        return large - small
    return large // small if large % small == 0 else None


def kukurasu(grid: Grid, data: Mapping[str, Any]) -> str:
    """Marks weigh their column's number in ``rows``, their row's number in ``columns``."""
    if fault := _only(grid, MARK + BLANK):
        return fault
    for kind, lines, wanted in (
        ("row", grid, data["rows"]),
        ("column", list(zip(*grid, strict=True)), data["columns"]),
    ):
        for i, (line, total) in enumerate(zip(lines, wanted, strict=True)):
            found = sum(k for k, x in enumerate(line, 1) if x == MARK)
            if found != total:
                return f"{kind} {i + 1} adds up to {found}, not {total}"
    return ""


def campsite(grid: Grid, data: Mapping[str, Any]) -> str:
    """One tent beside each of ``trees``, its own; no two touch; ``rows`` and ``columns`` count them."""
    trees = [tuple(tree) for tree in data["trees"]]
    tents = _marked(grid)
    if fault := _only(
        [[BLANK if (r, c) in trees else x for c, x in enumerate(row)] for r, row in enumerate(grid)], MARK + BLANK
    ):
        return fault
    rows, columns = len(grid), len(grid[0])
    for tent in tents:
        if tent in trees:
            return f"there is a tree at row {tent[0] + 1}, column {tent[1] + 1}"
        if set(around(tent, rows, columns, True)) & set(tents):
            return f"the tent at row {tent[0] + 1}, column {tent[1] + 1} touches another"
    if len(tents) != len(trees):
        return f"there are {len(tents)} tents for {len(trees)} trees"
    owner: dict[Cell, Any] = {}

    def seated(tree: Any, tried: set[Cell]) -> bool:
        for tent in set(around(tree, rows, columns)) & set(tents) - tried:
            tried.add(tent)
            if tent not in owner or seated(owner[tent], tried):
                owner[tent] = tree
                return True
        return False

    lone = next((tree for tree in trees if not seated(tree, set())), None)
    return (
        f"the tree at row {lone[0] + 1}, column {lone[1] + 1} has no tent of its own" if lone else _counts(grid, data)
    )


def norinori(grid: Grid, data: Mapping[str, Any]) -> str:
    """Two marks in each of ``regions``; each has one beside it, and no more."""
    if fault := _only(grid, MARK + BLANK) or _regions(grid, data["regions"], 2):
        return fault
    marks = set(_marked(grid))
    for r, c in sorted(marks):
        if len(marks & set(around((r, c), len(grid), len(grid[0])))) != 1:
            return f"the mark at row {r + 1}, column {c + 1} is not one of two"
    return ""


def _regions(grid: Grid, regions: Sequence[Sequence[Any]], count: int) -> str:
    found = Counter(regions[r][c] for r, c in _marked(grid))
    wrong = next((name for name in sorted({str(x) for row in regions for x in row}) if found[name] != count), None)
    return "" if wrong is None else f"region {wrong} has {found[wrong]} marks, not {count}"


def stars(grid: Grid, data: Mapping[str, Any]) -> str:
    """One mark in each row, column and region of ``regions``; no two touch, not even at corners."""
    ones = [1] * len(grid)
    if fault := _only(grid, MARK + BLANK) or _counts(grid, {"rows": ones, "columns": ones}):
        return fault
    marks = _marked(grid)
    for r, c in marks:
        if set(around((r, c), len(grid), len(grid), True)) & set(marks):
            return f"the mark at row {r + 1}, column {c + 1} touches another"
    return _regions(grid, data["regions"], 1)


def minesweeper(grid: Grid, data: Mapping[str, Any]) -> str:
    """``mines`` marks in all; each of ``clues`` (row, column, n) is no mine and has n around it."""
    marks = set(_marked(grid))
    for r, c, count in data["clues"]:
        if (r, c) in marks:
            return f"row {r + 1}, column {c + 1} is no mine"
        found = len(marks & set(around((r, c), len(grid), len(grid[0]), True)))
        if found != count:
            return f"around row {r + 1}, column {c + 1} are {found} mines, not {count}"
    return "" if len(marks) == data["mines"] else f"there are {len(marks)} mines, not {data['mines']}"


def numbrix(grid: Grid, data: Mapping[str, Any]) -> str:
    """1 to N * M once each, every number beside the one before; ``givens`` (row, column, n) are kept."""
    where = {grid[r][c]: (r, c) for r, c in _cells(grid)}
    count = len(_cells(grid))
    missing = next((i for i in range(1, count + 1) if str(i) not in where), None)
    if missing:
        return f"{missing} is missing"
    for r, c, number in data["givens"]:
        if grid[r][c] != str(number):
            return f"row {r + 1}, column {c + 1} is given as {number}"
    for i in range(2, count + 1):
        if where[str(i)] not in around(where[str(i - 1)], len(grid), len(grid[0])):
            return f"{i} is not beside {i - 1}"
    return ""


def number_wall(grid: Grid, data: Mapping[str, Any]) -> str:
    """Walls ``A``, none of 2 x 2, part islands of n cells, each of which has one of ``givens`` (row, column, n)."""
    rows, columns = len(grid), len(grid[0])
    given = {(r, c): n for r, c, n in data["givens"]}
    for (r, c), n in given.items():
        if grid[r][c] != str(n):
            return f"row {r + 1}, column {c + 1} is given as {n}"
    if fault := _only(
        [[BLANK if (r, c) in given else x for c, x in enumerate(row)] for r, row in enumerate(grid)], "A" + BLANK
    ):
        return fault
    walls = set(_marked(grid, "A"))
    for r, c in sorted(walls):
        if {(r + 1, c), (r, c + 1), (r + 1, c + 1)} <= walls:
            return f"there is a wall of two by two at row {r + 1}, column {c + 1}"
    left = set(_cells(grid)) - walls
    while left:
        island, todo = set(), [min(left)]
        while todo:
            cell = todo.pop()
            if cell in left:
                left.discard(cell)
                island.add(cell)
                todo += around(cell, rows, columns)
        numbers = [given[cell] for cell in island if cell in given]
        if len(numbers) != 1 or numbers[0] != len(island):
            return f"an island of {len(island)} cells has the numbers {numbers}"
    return ""


RULES: dict[str, Rules] = {
    "skyscraper": skyscraper, "calcudoko": calcudoko, "kukurasu": kukurasu, "campsite": campsite, "norinori": norinori,
    "star_placement": stars, "minesweeper": minesweeper, "numbrix": numbrix, "number_wall": number_wall,
}  # fmt: skip
"""By family, of nine whose cells are marks or numbers."""
