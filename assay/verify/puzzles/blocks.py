"""Grids that are compared with their solution, block by block."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from assay.errors import UsageError
from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.text.exact import shorten

MAX_SIDE = 100
_DRESS = str.maketrans(dict.fromkeys(",;|[](){}\"'", " "))


def block_proximity(given: Sequence[Sequence[Hashable]], wanted: Sequence[Sequence[Hashable]], block: int = 1) -> float:
    """Return the share of blocks of ``block`` by ``block`` cells of a grid that are wholly right; 1 counts cells.

    Blocks at the right and lower edge may be smaller. A grid of another shape has proximity 0.

    Raises:
        UsageError: an empty solution, or ``block`` below 1.

    Source: Sweet Spot Learning (arXiv 2601.22491), for mazes, Sudoku and ARC.
    """
    if block < 1 or not wanted or not wanted[0]:
        raise UsageError(f"proximity: block {block} must be at least 1, and the solution a grid")
    if [len(row) for row in given] != [len(row) for row in wanted]:
        return 0.0
    right: dict[tuple[int, int], bool] = {}
    for y, (mine, theirs) in enumerate(zip(given, wanted, strict=True)):
        for x, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            right[y // block, x // block] = right.get((y // block, x // block), True) and a == b
    return sum(right.values()) / len(right)


@part("verify", "grid")
@dataclass(frozen=True, slots=True)
class Grid(Puzzle):
    """Right iff the grid in the answer is the solution, cell by cell.

    ``task.reference`` is ``{"solution": grid}``, N rows of M cells as lists or as lines of text, where cells have
    blanks between them or are single characters; ``"block"`` may say how large blocks are. Of the answer, the last N
    successive lines of M cells are the grid; rulers, bars, commas and brackets are passed over. ``parts``:
    ``proximity``, the share of blocks that are wholly right, 0 where there is no grid of that shape.

    Args:
        block: side of a block in cells; 1 counts cells.

    Source: Sweet Spot Learning (arXiv 2601.22491), proximity of grids.
    """

    block: int = 1
    shape: ClassVar[str] = "{'solution': grid}"

    def __post_init__(self) -> None:
        if self.block < 1:
            raise UsageError(f"verifier 'grid': block {self.block} must be at least 1")

    def read(self, reference: Mapping[str, Any]) -> tuple[list[list[str]], int]:
        solution, block = reference["solution"], int(reference.get("block", self.block))
        if isinstance(solution, str):
            lines = [line.split() for line in solution.splitlines() if line.strip()]
            rows = [list(line[0]) for line in lines] if all(len(line) == 1 for line in lines) else lines
        else:
            rows = [[str(cell) for cell in row] for row in solution]
        width = len(rows[0]) if rows else 0
        if not 1 <= width <= MAX_SIDE or len(rows) > MAX_SIDE or any(len(row) != width for row in rows):
            raise ValueError(f"the solution is no grid of 1 to {MAX_SIDE} rows and columns")
        if block < 1 or any(len(cell.translate(_DRESS).split()) != 1 for row in rows for cell in row):
            raise ValueError("a block has no cells, or a cell is empty or has blanks, commas, bars or brackets")
        return rows, block

    def check(self, puzzle: tuple[list[list[str]], int], answer: str) -> Verdict:
        wanted, block = puzzle
        given = _grid(answer, len(wanted), len(wanted[0]), all(len(x) == 1 for row in wanted for x in row))
        wrong = next(
            ((r, c) for r, row in enumerate(wanted) for c, cell in enumerate(row) if given[r][c] != cell), None
        )
        near = block_proximity(given, wanted, block)
        if wrong is None:
            return self.verdict("", near, {"proximity": near})
        r, c = wrong
        complaint = f"row {r + 1}, column {c + 1} is {wanted[r][c]}, not {shorten(given[r][c], 20)!r}"
        return self.verdict(complaint, near, {"proximity": near})

    def unreadable(self, why: str) -> Verdict:
        return Verdict(0.0, False, {"format": 0.0, "proximity": 0.0}, why)


def _grid(answer: str, rows: int, columns: int, single: bool) -> list[list[str]]:
    """Return the last run of ``rows`` lines of ``columns`` cells; without one, all cells there are if just as many."""
    lines = []
    for text in answer.splitlines():
        line = text.translate(_DRESS).split()
        if single and len(line) == 1 and len(line[0]) == columns:
            line = list(line[0])
        if line and (len(line) == columns or not set("".join(line)) <= set("-+=")):
            lines.append(line)
    for end in range(len(lines), rows - 1, -1):
        if all(len(line) == columns for line in lines[end - rows : end]):
            return lines[end - rows : end]
    cells = list(chain.from_iterable(lines))
    if len(cells) != rows * columns:
        raise BadAnswer(f"no {rows} lines of {columns} cells in the answer")
    return [cells[i : i + columns] for i in range(0, len(cells), columns)]
