"""Puzzles whose cells hold arrows, letters or words, by their rules: whatever grid keeps to them is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from assay.verify.puzzles.grids import BLANK, Cell, Grid, Rules
from assay.verify.text.exact import shorten

ARROWS: dict[str, Cell] = {
    "↑": (-1, 0), "↗": (-1, 1), "→": (0, 1), "↘": (1, 1), "↓": (1, 0), "↙": (1, -1), "←": (0, -1), "↖": (-1, -1),
}  # fmt: skip
"""What a step along each arrow adds to row and column."""


def rays(grid: Sequence[Sequence[str]], start: Cell) -> list[Cell]:
    """Return the cells of the unbroken lines of arrows that lead away from a cell, in all eight directions."""
    found = []
    for arrow, (down, right) in ARROWS.items():
        r, c = start[0] + down, start[1] + right
        while 0 <= r < len(grid) and 0 <= c < len(grid[r]) and grid[r][c] == arrow:
            found.append((r, c))
            r, c = r + down, c + right
    return found


def arrow_maze(grid: Grid, data: Mapping[str, Any]) -> str:
    """Each number of ``board`` has as many arrows in rays as it says, each arrow is in one; ``X`` was to be filled."""
    covered: set[Cell] = set()
    for r, row in enumerate(data["board"]):
        for c, given in enumerate(row):
            cell = grid[r][c]
            if given != "X" and cell != given:
                return f"row {r + 1}, column {c + 1} is given as {given}"
            if given == "X" and cell not in ARROWS:
                return f"{shorten(cell, 20)!r} at row {r + 1}, column {c + 1} is no arrow"
            if given.isdecimal():
                found = rays(grid, (r, c))
                if len(found) != int(given):
                    return f"{len(found)} arrows lead away from the {given} at row {r + 1}, column {c + 1}"
                covered.update(found)
    lone = next(
        ((r, c) for r, row in enumerate(grid) for c, x in enumerate(row) if x in ARROWS and (r, c) not in covered), None
    )
    return "" if lone is None else f"no number's ray has the arrow at row {lone[0] + 1}, column {lone[1] + 1}"


def words_in(lines: Iterable[Iterable[str]]) -> list[str]:
    """Return the runs of two or more letters in lines of cells, blanks being between them."""
    return [run for line in lines for run in "".join(" " if x == BLANK else x for x in line).split() if len(run) > 1]


def wordscapes(grid: Grid, data: Mapping[str, Any]) -> str:
    """Letters where ``shape`` has X; runs of them are the words ``across`` and ``down``, as often as these say."""
    for r, row in enumerate(data["shape"]):
        for c, given in enumerate(row):
            cell = grid[r][c]
            if (given == BLANK) != (cell == BLANK) or len(cell) != 1 or not (cell == BLANK or cell.isalpha()):
                what = "blank" if given == BLANK else "a letter"
                return f"row {r + 1}, column {c + 1} is to be {what}, not {shorten(cell, 20)!r}"
    lower = [[cell.lower() for cell in row] for row in grid]
    for way, lines in (("across", lower), ("down", list(zip(*lower, strict=True)))):
        wanted, found = Counter(data[way]), Counter(words_in(lines))
        if found != wanted:
            odd = sorted((found - wanted).elements()) or sorted((wanted - found).elements())
            return f"{odd[0]!r} is {'' if odd[0] in found - wanted else 'not '}written {way}"
    return ""


def zebra_puzzle(grid: Grid, data: Mapping[str, Any]) -> str:
    """A line for each house, a column for each of ``kinds``, which holds its values once each; ``clues`` are true."""
    lower = [[cell.lower() for cell in row] for row in grid]
    for c, values in enumerate(data["kinds"]):
        if sorted(row[c] for row in lower) != sorted(values):
            return f"column {c + 1} does not hold {', '.join(values)} once each"
    house = {cell: r for r, row in enumerate(lower) for cell in row}
    for kind, first, second in data["clues"]:
        if not CLUES[kind](house[first], house[second] if isinstance(second, str) else int(second)):
            return f"it is not so that {told(kind, first, second)}"
    return ""


CLUES: dict[str, Callable[[int, int], bool]] = {
    "at": lambda a, b: a == b,
    "same": lambda a, b: a == b,
    "next": lambda a, b: b - a == 1,
    "beside": lambda a, b: abs(a - b) == 1,
    "left": lambda a, b: a < b,
}
"""What each clue says of the houses of two values, counted from 0; of ``at``, the second is a house itself."""


def told(kind: str, first: str, second: str | int) -> str:
    """Say a clue in words."""
    if kind == "at":
        return f"{first} is in house {int(second) + 1}"
    return {
        "same": f"{first} is in the house of {second}",
        "next": f"{first} is directly left of {second}",
        "beside": f"{first} is directly beside {second}",
        "left": f"{first} is somewhere left of {second}",
    }[kind]


WRITTEN: dict[str, Rules] = {"arrow_maze": arrow_maze, "wordscapes": wordscapes, "zebra_puzzle": zebra_puzzle}
"""By family."""
