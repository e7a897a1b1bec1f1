"""Paths through a grid with walls: every step is possible, and the goal is reached."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.text.exact import shorten

Cell = tuple[int, int]
_STEPS = {"u": (-1, 0), "d": (1, 0), "l": (0, -1), "r": (0, 1)}
_WORDS = {"u": "up north n ↑", "d": "down south s ↓", "l": "left west w ←", "r": "right east e →"}
_SAME = {word: step for step, words in _WORDS.items() for word in words.split()}
_FILLER = re.compile(r"moves?|go|then|and|path|the|to|is|start|goal|end|a|steps?")
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+|[↑↓←→]")
_CELL = re.compile(r"[(\[]\s{0,4}([0-9]{1,6})\s{0,4},\s{0,4}([0-9]{1,6})\s{0,4}[)\]]")
MAX_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Maze:
    grid: tuple[str, ...]
    start: Cell
    goal: Cell
    walls: str
    shortest: bool
    diagonal: bool
    origin: int
    xy: bool

    def open(self, cell: Cell) -> bool:
        r, c = cell
        return 0 <= r < len(self.grid) and 0 <= c < len(self.grid[r]) and self.grid[r][c] not in self.walls

    def show(self, cell: Cell) -> str:
        r, c = (x + self.origin for x in cell)
        return f"({c}, {r})" if self.xy else f"({r}, {c})"


@part("verify", "maze")
@dataclass(frozen=True, slots=True)
class MazePath(Puzzle):
    """Right iff the moves, or the cells, in the answer lead from start to goal without touching a wall.

    ``task.reference`` is ``{"grid": [rows of text]}`` (or the rows as lines of one text) with ``S`` and ``G`` (or
    ``E``) for start and goal, unless ``"start"`` and ``"goal"`` give them as ``[row, column]`` from 0. ``"walls"``:
    characters that block (default ``#``); ``"shortest": true``: longer paths are wrong; ``"diagonal": true``: cells may
    be left by a corner. The answer is moves (``UDLR``, ``NSEW``, words or arrows) or cells, ``(row, column)`` counted
    from ``"origin"`` (default 0), or ``(x, y)`` with ``"order": "xy"``; cells begin with the start. Where the goal
    cannot be reached, "no path" is right.

    ``parts``: ``progress``, how much nearer (in steps) the last cell before the first mistake is to the goal than the
    start; ``goal``; ``shortest``, where asked.
    """

    shape: ClassVar[str] = "{'grid': [rows]}"

    def read(self, reference: Mapping[str, Any]) -> Maze:
        grid = reference["grid"]
        lines = tuple(str(row) for row in (grid.strip("\n").split("\n") if isinstance(grid, str) else grid))
        if not 0 < sum(map(len, lines)) <= MAX_CELLS:
            raise ValueError("the grid is empty or too large")
        start = _place(reference.get("start"), lines, "S")
        goal = _place(reference.get("goal"), lines, "GE")
        order = reference.get("order", "rc")
        if order not in ("rc", "xy"):
            raise ValueError(f"order {order!r} is neither 'rc' nor 'xy'")
        flags = bool(reference.get("shortest", False)), bool(reference.get("diagonal", False))
        walls = str(reference.get("walls", "#"))
        maze = Maze(lines, start, goal, walls, *flags, int(reference.get("origin", 0)), order == "xy")
        if not (maze.open(start) and maze.open(goal)):
            raise ValueError("start or goal is in a wall or outside")
        return maze

    def deny(self, puzzle: Maze, solvable: bool) -> Verdict:
        return Verdict.wrong("there is a path") if puzzle.start in distances(puzzle) else Verdict.right()

    def check(self, puzzle: Maze, answer: str) -> Verdict:
        away = distances(puzzle)
        if puzzle.start not in away:
            return Verdict.wrong("the goal cannot be reached")
        here, steps, complaint = puzzle.start, 0, ""
        for number, target, name in _walk(puzzle, answer):
            if not puzzle.open(target):
                complaint = f"step {number}, {name}, leads into a wall or outside at {puzzle.show(target)}"
            elif not _adjacent(here, target, puzzle.diagonal):
                complaint = f"step {number} jumps from {puzzle.show(here)} to {puzzle.show(target)}"
            if complaint:
                break
            here, steps = target, steps + 1
        goal = not complaint and here == puzzle.goal
        if not complaint and not goal:
            complaint = f"ends at {puzzle.show(here)}, the goal is at {puzzle.show(puzzle.goal)}"
        whole = away[puzzle.start]
        progress = max(0.0, 1 - away[here] / whole) if whole else float(here == puzzle.goal)
        parts: dict[str, float | None] = {"progress": progress, "goal": float(goal)}
        if puzzle.shortest:
            parts["shortest"] = float(steps == whole) if goal else None
            if goal and steps != whole:
                complaint = f"takes {steps} steps, {whole} are enough"
        return self.verdict(complaint, progress, parts)


def _place(given: Any, lines: tuple[str, ...], marks: str) -> Cell:
    if given is not None:
        r, c = (int(x) for x in given)
        return r, c
    found = [(r, c) for r, row in enumerate(lines) for c, mark in enumerate(row) if mark in marks]
    if len(found) != 1:
        raise ValueError(f"{len(found)} cells are marked {' or '.join(marks)}")
    return found[0]


def _neighbours(cell: Cell, diagonal: bool) -> list[Cell]:
    r, c = cell
    near = [(r + dr, c + dc) for dr, dc in _STEPS.values()]
    return near + [(r + dr, c + dc) for dr in (-1, 1) for dc in (-1, 1)] if diagonal else near


def _adjacent(a: Cell, b: Cell, diagonal: bool) -> bool:
    down, right = abs(a[0] - b[0]), abs(a[1] - b[1])
    return max(down, right) == 1 if diagonal else down + right == 1


def distances(maze: Maze) -> dict[Cell, int]:
    """Return the number of steps to the goal from every cell that it can be reached from (breadth first)."""
    away = {maze.goal: 0}
    queue = deque([maze.goal])
    while queue:
        here = queue.popleft()
        for cell in _neighbours(here, maze.diagonal):
            if cell not in away and maze.open(cell):
                away[cell] = away[here] + 1
                queue.append(cell)
    return away


def _walk(maze: Maze, answer: str) -> list[tuple[int, Cell, str]]:
    """Return the cells that the answer visits after the start, as ``(number of the step, cell, what it is called)``."""
    pairs = _CELL.findall(answer)
    if pairs:
        cells = [(int(a) - maze.origin, int(b) - maze.origin) for a, b in pairs]
        cells = [(b, a) for a, b in cells] if maze.xy else cells
        if cells[0] != maze.start:
            raise BadAnswer(f"begins at {maze.show(cells[0])}, the start is {maze.show(maze.start)}")
        return [(i, cell, "to this cell") for i, cell in enumerate(cells[1:], 1)]
    (r, c), walk = maze.start, []
    for i, step in enumerate(_moves(answer), 1):
        r, c = r + _STEPS[step][0], c + _STEPS[step][1]
        walk.append((i, (r, c), {"u": "up", "d": "down", "l": "left", "r": "right"}[step]))
    return walk


def _moves(answer: str) -> list[str]:
    moves: list[str] = []
    # "->" between words is punctuation, an arrow between letters as well: "R → D".
    tokens = [token.lower() for token in _TOKEN.findall(answer)]
    worded = any(token[0].isalpha() and not _FILLER.fullmatch(token) for token in tokens)
    for token in tokens:
        if _FILLER.fullmatch(token) or (worded and token in "↑↓←→"):
            continue
        if token in _STEPS or token in _SAME:
            moves.append(_SAME.get(token, token))
        elif all(letter in _STEPS or letter in _SAME for letter in token) and token.isalpha():
            moves += [_SAME.get(letter, letter) for letter in token]
        else:
            raise BadAnswer(f"{shorten(token, 20)!r} is no move")
    return moves
