"""N queens that do not attack each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.puzzles.reading import integers, shown

_BOARD_LINE = re.compile(r"[Q.\-_#*x\s|]+")
_PAIR = re.compile(r"[(\[]\s{0,4}[0-9]{1,6}\s{0,4},\s{0,4}[0-9]{1,6}\s{0,4}[)\]]")
MAX_SIZE = 1000


@dataclass(frozen=True, slots=True)
class Board:
    size: int
    placed: frozenset[tuple[int, int]]
    origin: int


@part("verify", "queens")
@dataclass(frozen=True, slots=True)
class Queens(Puzzle):
    """Right iff the answer places N queens on an N x N board so that none attacks another.

    ``task.reference`` is ``{"n": N}``, with ``"placed": [[row, column], ...]`` for queens that are given. The answer is
    a board with ``Q`` for queens, pairs ``(row, column)``, or N numbers, the column of the queen in each row; numbers
    count from ``"origin"`` (default 0), in the reference as well. ``parts``: ``placed``, the share of given queens
    kept; ``safe``, the share of queens that attack none.
    """

    shape: ClassVar[str] = "{'n': N}"

    def read(self, reference: Mapping[str, Any]) -> Board:
        size, origin = int(reference["n"]), int(reference.get("origin", 0))
        placed = frozenset((int(r) - origin, int(c) - origin) for r, c in reference.get("placed") or ())
        if not 1 <= size <= MAX_SIZE or any(not (0 <= r < size and 0 <= c < size) for r, c in placed):
            raise ValueError(f"N is not between 1 and {MAX_SIZE}, or a given queen is off the board")
        return Board(size, placed, origin)

    def deny(self, puzzle: Board, solvable: bool) -> Verdict:
        return Verdict.right() if puzzle.size in (2, 3) or not solvable else Verdict.wrong("there is a solution")

    def check(self, puzzle: Board, answer: str) -> Verdict:
        queens = _queens(answer, puzzle)
        if len(queens) != puzzle.size:
            raise BadAnswer(f"places {len(queens)} queens, not {puzzle.size}")

        def show(queen: tuple[int, int]) -> str:
            return f"({queen[0] + puzzle.origin}, {queen[1] + puzzle.origin})"

        complaint = next((f"the given queen {show(q)} is missing" for q in sorted(puzzle.placed - set(queens))), "")
        lines: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for r, c in queens:
            for line in (("row", r), ("column", c), ("diagonal", r - c), ("antidiagonal", r + c)):
                lines.setdefault(line, []).append((r, c))
        attacked = set()
        for (kind, _), on_line in lines.items():
            if len(on_line) > 1:
                attacked |= set(on_line)
                complaint = complaint or f"{show(on_line[0])} and {show(on_line[1])} are on one {kind}"
        kept = len(puzzle.placed & set(queens)) / len(puzzle.placed) if puzzle.placed else 1.0
        safe = 1 - len(attacked) / puzzle.size
        return self.verdict(complaint, kept * safe, {"placed": kept, "safe": safe})


def _queens(answer: str, board: Board) -> list[tuple[int, int]]:
    lines = [line for line in answer.splitlines() if line.strip() and _BOARD_LINE.fullmatch(line)]
    if any("Q" in line for line in lines):
        rows = ["".join(mark for mark in line if not mark.isspace() and mark != "|") for line in lines[-board.size :]]
        if len(rows) != board.size or any(len(row) != board.size for row in rows):
            raise BadAnswer(f"the board is not {board.size} lines of {board.size} squares")
        return [(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "Q"]
    numbers = integers(answer)
    if _PAIR.search(answer):
        numbers = integers(" ".join(_PAIR.findall(answer)))
        queens = list(zip(numbers[::2], numbers[1::2], strict=True))
    else:
        queens = list(enumerate(numbers, board.origin))
    queens = [(r - board.origin, c - board.origin) for r, c in queens]
    outside = next(((r, c) for r, c in queens if not (0 <= r < board.size and 0 <= c < board.size)), None)
    if outside is not None:
        raise BadAnswer(f"({shown(outside[0] + board.origin)}, {shown(outside[1] + board.origin)}) is off the board")
    return queens
