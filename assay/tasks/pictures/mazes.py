"""Pictures of mazes with one way through them, of as many moves and turns as are wanted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture, canvas
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task
from assay.verify.puzzles.path_prefix import MOVES, WORDS, Cell, written

QUESTION = """The picture is a maze of cells. Black lines are walls. Find the way from the green cell to the red one, \
moving up, down, left or right by one cell at a time, never through a wall. Think within <think> and </think>, then \
give the moves alone, each as one of <|up|>, <|down|>, <|left|>, <|right|>."""
GREEN, RED, BLACK, GREY, WHITE = (144, 238, 144), (240, 128, 128), (0, 0, 0), (211, 211, 211), (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Laid:
    """A maze: for each cell the moves out of it that no wall stops, where it is entered, and the one way through it."""

    cells: tuple[tuple[str, ...], ...]
    start: Cell
    path: str

    @property
    def goal(self) -> Cell:
        return visited(self.start, self.path)[-1]

    @property
    def reference(self) -> dict[str, Any]:
        """What the verifier ``path_prefix`` reads."""
        cells = [list(row) for row in self.cells]
        return {"path": self.path, "cells": cells, "start": list(self.start), "goal": list(self.goal)}


@part("tasks", "mazes")
@dataclass(frozen=True, slots=True)
class Mazes:
    """Endless pictures of mazes, each to be crossed by the one path there is, as long and as crooked as is asked for.

    A number of moves is drawn by its share, then a number of turns (changes of direction) up to ``turns``, of those
    that a path of these moves can have each as often. Any two cells are joined by one path only. Levels beyond
    training are another source, such as ``moves = [6, 7, 8, 9, 10], shares = [], turns = 4``;
    ``assay eval --by cell`` measures each pair of moves and turns by itself.

    Args:
        seed: >= 0.
        grid: cells on a side.
        pixels: on a side of a cell; around the maze there is a margin of one cell.
        moves: lengths of paths.
        shares: how often each of these, in proportion; empty: all alike.
        turns: in a path, at most.
        question: what is asked of a picture.

    Raises:
        UsageError: an option out of range, a length that no path in the grid has with so few turns, or no Pillow.

    Source: Ariadne (arXiv 2511.00710) and its authors' code, whose lengths, shares and turns are the defaults. Its
    mazes are AlphaMaze's.
    """

    seed: int = 0
    grid: int = 5
    pixels: int = 16
    moves: tuple[int, ...] = (1, 2, 3, 4, 5)
    shares: tuple[float, ...] = (0.21, 0.18, 0.16, 0.18, 0.21)
    turns: int = 2
    question: str = QUESTION

    def __post_init__(self) -> None:
        check_seed("tasks 'mazes'", self.seed)
        if not 2 <= self.grid <= 7 or not 4 <= self.pixels <= 256:
            raise UsageError(
                f"tasks 'mazes': grid {self.grid} must be 2 to 7, and pixels {self.pixels} must be 4 to 256"
            )
        if not 0 <= self.turns <= 6:
            raise UsageError(f"tasks 'mazes': turns {self.turns} must be 0 to 6")
        if not self.moves or len(set(self.moves)) < len(self.moves):
            raise UsageError(f"tasks 'mazes': moves {list(self.moves)} must be different lengths, one or more")
        if self.shares and (len(self.shares) != len(self.moves) or min(self.shares) <= 0):
            raise UsageError(
                f"tasks 'mazes': shares {list(self.shares)} must be one above 0 for each of moves {list(self.moves)}"
            )
        for n in self.moves:
            if not bends(self.grid, n, self.turns):
                raise UsageError(
                    f"tasks 'mazes': no path of {n} moves and at most {self.turns} turns fits into {self.grid} x "
                    f"{self.grid} cells; take out {n} or let there be more turns"
                )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        shares = np.asarray(self.shares or [1.0] * len(self.moves))
        moves = int(rng.choice(self.moves, p=shares / shares.sum()))
        turns = int(rng.choice(bends(self.grid, moves, self.turns)))
        laid = lay(rng, self.grid, moves, turns)
        picture = Picture.of(draw(laid, self.pixels))
        message: Message = {"role": "user", "content": f"{MARK}{self.question}", "images": (picture,)}
        return Task(
            id=f"mazes/{self.seed}/{index}",
            prompt=(message,),
            reference=laid.reference,
            kind="path_prefix",
            solution=f"<think>{told(laid.path)}</think>{written(laid.path)}",
            meta={
                "source": "mazes",
                "moves": moves,
                "turns": turns,
                "cell": f"{moves} moves, {turns} turns",
                "difficulty": moves,
            },
        )


def lay(rng: np.random.Generator, grid: int, moves: int, turns: int) -> Laid:
    """Return a maze whose cells are joined by a random spanning tree that holds a random path of so many moves and
    turns.

    Raises:
        ValueError: there is no such path.
    """
    found = find_path(rng, grid, moves, turns)
    if found is None:
        raise ValueError(f"no path of {moves} moves and {turns} turns in {grid} x {grid} cells")
    start, path = found
    joined = {cell: cell for cell in product(range(grid), range(grid))}

    def root(cell: Cell) -> Cell:
        while joined[cell] != cell:
            cell = joined[cell]
        return cell

    edges = [((r, c), (r + dr, c + dc)) for r in range(grid) for c in range(grid) for dr, dc in ((0, 1), (1, 0))]
    edges = [(a, b) for a, b in edges if max(b) < grid]
    kept = list(pairwise(visited(start, path)))
    for a, b in kept + [edges[i] for i in rng.permutation(len(edges))]:
        if root(a) != root(b):
            joined[root(a)] = root(b)
            kept.append((a, b))
    open_: dict[Cell, str] = dict.fromkeys(joined, "")
    for cell in open_:
        for move, (dr, dc) in MOVES.items():
            near = (cell[0] + dr, cell[1] + dc)
            if (cell, near) in kept or (near, cell) in kept:
                open_[cell] += move
    return Laid(tuple(tuple(open_[r, c] for c in range(grid)) for r in range(grid)), start, path)


def find_path(rng: np.random.Generator, grid: int, moves: int, turns: int) -> tuple[Cell, str] | None:
    """Return a random start and path that crosses no cell twice, ``None`` if there is none: all are tried."""

    def longer(path: str, at: Cell, seen: frozenset[Cell], left: int) -> str | None:
        if len(path) == moves:
            return path if left == 0 else None
        for k in rng.permutation(4):
            move = "UDLR"[k]
            near = (at[0] + MOVES[move][0], at[1] + MOVES[move][1])
            after = left - (path != "" and move != path[-1])
            rest = moves - len(path) - 1
            # What is left has to fit into straight runs, of at most grid - 1 moves each.
            fits = 0 <= after <= rest <= (after + 1) * (grid - 1)
            if fits and min(near) >= 0 and max(near) < grid and near not in seen:
                whole = longer(path + move, near, seen | {near}, after)
                if whole is not None:
                    return whole
        return None

    for i in rng.permutation(grid * grid):
        start = divmod(int(i), grid)
        path = longer("", start, frozenset((start,)), turns)
        if path:
            return start, path
    return None


@functools.lru_cache(maxsize=256)
def bends(grid: int, moves: int, most: int) -> tuple[int, ...]:
    """Return the numbers of turns up to ``most`` that a path of so many moves in the grid can have."""
    return tuple(t for t in range(most + 1) if find_path(generator(0), grid, moves, t) is not None)


def visited(start: Cell, path: str) -> list[Cell]:
    """Return the cells of a path, the first included."""
    cells = [start]
    for move in path:
        cells.append((cells[-1][0] + MOVES[move][0], cells[-1][1] + MOVES[move][1]))
    return cells


def told(path: str) -> str:
    """Return a path in words, straight run by straight run: ``2 right, 1 up``."""
    runs: list[tuple[str, int]] = []
    for move in path:
        runs = [*runs[:-1], (move, runs[-1][1] + 1)] if runs and runs[-1][0] == move else [*runs, (move, 1)]
    return ", ".join(f"{n} {WORDS[move]}" for move, n in runs)


def draw(laid: Laid, pixels: int) -> Any:
    """Return the picture, a ``PIL.Image`` of ``(grid + 2) * pixels`` pixels on a side."""
    grid = len(laid.cells)
    side, wide = (grid + 2) * pixels, max(2, pixels // 8)
    image, pen = canvas(side, side, WHITE)

    def corner(cell: Sequence[int]) -> tuple[int, int]:
        return (cell[1] + 1) * pixels, (cell[0] + 1) * pixels

    for cell, colour in ((laid.start, GREEN), (laid.goal, RED)):
        x, y = corner(cell)
        pen.rectangle((x, y, x + pixels - 1, y + pixels - 1), colour)
    for k in range(1, grid + 2):
        pen.line((k * pixels, 0, k * pixels, side), GREY)
        pen.line((0, k * pixels, side, k * pixels), GREY)
    for cell in product(range(grid), range(grid)):
        x, y = corner(cell)
        ends = {"U": (0, 0, 1, 0), "D": (0, 1, 1, 1), "L": (0, 0, 0, 1), "R": (1, 0, 1, 1)}
        for move, (x0, y0, x1, y1) in ends.items():
            if move not in laid.cells[cell[0]][cell[1]]:
                pen.line((x + x0 * pixels, y + y0 * pixels, x + x1 * pixels, y + y1 * pixels), BLACK, wide)
    return image
