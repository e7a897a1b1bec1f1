"""Sudoku and Latin squares of any size: rows, columns and boxes hold every symbol once, and the givens are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.text.exact import shorten

_TOKEN = re.compile(r"[0-9]+|[._?]")
_BLANK = ("0", ".", "_", "?", "")
_ROW_LABEL = re.compile(r"^\W{0,8}(?:row|r)\s?[0-9]{1,2}\s?[:=]", re.IGNORECASE)
MAX_SIZE = 36

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Board:
    """The givens (``""`` is blank), the symbols, and the height and width of a box (``None``: no boxes)."""

    cells: Grid
    symbols: tuple[str, ...]
    box: tuple[int, int] | None


@part("verify", "sudoku")
@dataclass(frozen=True, slots=True)
class Sudoku(Puzzle):
    """Right iff the grid in the answer is a solution of the puzzle, whichever it is.

    ``task.reference`` is ``{"puzzle": grid}`` with the grid as rows of numbers or as text, blanks being ``0 . _ ?`` or
    ``null``. Also ``"box": [height, width]`` (default: the squarest that fits, for prime sizes none) or ``false`` for a
    Latin square, and ``"symbols"``: a text of N characters if they are not the numbers 1 to N. In the answer the last N
    lines of N cells are the grid; rulers, bars, commas and brackets are passed over. ``parts`` are ``givens``,
    ``rows``, ``columns`` and ``boxes``: the share of each that is right.
    """

    shape: ClassVar[str] = "{'puzzle': grid}"

    def read(self, reference: Mapping[str, Any]) -> Board:
        puzzle = reference["puzzle"]
        symbols = reference.get("symbols")
        if isinstance(puzzle, str):
            rows = _rows_of_text(puzzle, tuple(symbols) if symbols else None)
        else:
            rows = [["" if cell is None else str(cell) for cell in row] for row in puzzle]
        size = len(rows)
        if not 1 <= size <= MAX_SIZE or any(len(row) != size for row in rows):
            raise ValueError(f"the grid is not N x N with 1 <= N <= {MAX_SIZE}")
        known = tuple(symbols) if symbols else tuple(str(i + 1) for i in range(size))
        cells = [[cell if cell in known else "" if cell in _BLANK else None for cell in row] for row in rows]
        if len(set(known)) != size or any(cell is None for row in cells for cell in row):
            raise ValueError(f"the symbols are not {size} different ones, or a cell has another")
        return Board([[cell or "" for cell in row] for row in cells], known, _box(reference.get("box"), size))

    def check(self, puzzle: Board, answer: str) -> Verdict:
        grid = grid_of(answer, puzzle.symbols)
        size = len(grid)
        givens = [(r, c) for r in range(size) for c in range(size) if puzzle.cells[r][c]]
        changed = [(r, c) for r, c in givens if grid[r][c] != puzzle.cells[r][c]]
        complaints = [
            f"row {r + 1}, column {c + 1} is given as {puzzle.cells[r][c]}, not {grid[r][c]}" for r, c in changed[:1]
        ]
        parts: dict[str, float | None] = {"givens": 1 - len(changed) / len(givens) if givens else 1.0}
        for kind, units in _units(size, puzzle.box).items():
            broken = [(i, twice) for i, unit in enumerate(units) if (twice := _repeated(grid, unit))]
            complaints += [f"{kind} {i + 1} has {twice} twice" for i, twice in broken[:1]]
            parts[{"row": "rows", "column": "columns", "box": "boxes"}[kind]] = 1 - len(broken) / len(units)
        credit = sum(v for v in parts.values() if v is not None) / len(parts)
        return self.verdict(complaints[0] if complaints else "", credit, parts)


def _box(box: Any, size: int) -> tuple[int, int] | None:
    if box is False:
        return None
    if box is None:
        height = next(h for h in range(math.isqrt(size), 0, -1) if size % h == 0)
        return (height, size // height) if height > 1 else None
    height, width = (int(side) for side in box)
    if height < 1 or height * width != size:
        raise ValueError(f"a box of {height} x {width} does not hold {size} cells")
    return height, width


def _units(size: int, box: tuple[int, int] | None) -> dict[str, list[list[tuple[int, int]]]]:
    units = {
        "row": [[(r, c) for c in range(size)] for r in range(size)],
        "column": [[(r, c) for r in range(size)] for c in range(size)],
    }
    if box is not None:
        height, width = box
        units["box"] = [
            [(top + r, left + c) for r in range(height) for c in range(width)]
            for top in range(0, size, height)
            for left in range(0, size, width)
        ]
    return units


def _repeated(grid: Grid, unit: Sequence[tuple[int, int]]) -> str:
    seen: set[str] = set()
    for r, c in unit:
        if grid[r][c] in seen:
            return grid[r][c]
        seen.add(grid[r][c])
    return ""


def _cells(line: str, symbols: Sequence[str]) -> list[str]:
    """Return the cells of a line: numbers, or characters where every symbol is a single one."""
    line = _ROW_LABEL.sub("", line, count=1)
    if not all(symbol.isdigit() for symbol in symbols):
        return [character for character in line if character in symbols or character in "._?"]
    tokens = _TOKEN.findall(line)
    return tokens if len(symbols[-1]) > 1 else [digit for token in tokens for digit in token]


def _rows_of_text(text: str, symbols: Sequence[str] | None) -> Grid:
    """Return the rows of a puzzle given as text: N lines of N cells, or N * N digits in one line."""
    one, many = symbols or tuple("123456789"), symbols or ("1", "10")
    lines = [line for line in text.splitlines() if _cells(line, one)]
    if len(lines) > 1:
        rows = [_cells(line, many) for line in lines]
        return rows if all(len(row) == len(lines) for row in rows) else [_cells(line, one) for line in lines]
    flat = _cells(text, one)
    size = math.isqrt(len(flat))
    return [flat[i : i + size] for i in range(0, len(flat), size)] if size else []


def grid_of(answer: str, symbols: Sequence[str]) -> Grid:
    """Return the last N x N grid of ``answer``, N being the number of symbols.

    Raises:
        BadAnswer: there is none, or a cell holds something else than a symbol.
    """
    size = len(symbols)
    rows = [row for line in answer.splitlines() if (row := _cells(line, symbols))]
    end = next((i for i in range(len(rows), size - 1, -1) if all(len(r) == size for r in rows[i - size : i])), None)
    if end is not None:
        grid = rows[end - size : end]
    else:
        flat = [cell for row in rows for cell in row]
        if len(flat) != size * size:
            raise BadAnswer(f"no {size} lines of {size} cells in the answer")
        grid = [flat[i : i + size] for i in range(0, size * size, size)]
    for r, row in enumerate(grid):
        for c, cell in enumerate(row):
            if cell not in symbols:
                raise BadAnswer(
                    f"row {r + 1}, column {c + 1} holds {shorten(cell, 20)!r}, which is no symbol of the puzzle"
                )
    return grid
