"""Mazes with one way, and the way."""

from __future__ import annotations

import numpy as np

from assay.verify.drawings.puzzles.cells import EMPTY, WALL, Cell, beside
from assay.verify.drawings.puzzles.maze import AGENT, GOAL, HOME, distances, entered


def make(rng: np.random.Generator, side: int, moves: int) -> list[np.ndarray]:
    """Return the boards of a maze and of each move of the one way through it.

    Any two cells are joined by one way, drawn by a walk that turns back only where it must.

    Args:
        rng: draws it.
        side: blocks on a side of the board, odd.
        moves: at most; at least one.
    """
    floor = np.full((side, side), WALL)
    floor[::2, ::2] = EMPTY
    cells = [(r, c) for r in range(0, side, 2) for c in range(0, side, 2)]
    walk = [cells[rng.integers(len(cells))]]
    reached = set(walk)
    while walk:
        here = walk[-1]
        ways = [cell for cell in beside(here, floor.shape, 2) if cell not in reached]
        if ways:
            there = ways[rng.integers(len(ways))]
            floor[(here[0] + there[0]) // 2, (here[1] + there[1]) // 2] = EMPTY
            reached.add(there)
            walk.append(there)
        else:
            walk.pop()
    goal = cells[rng.integers(len(cells))]
    starts = sorted(cell for cell, far in distances(floor, goal).items() if 1 <= far <= moves)
    floor[goal] = GOAL
    return [_with(floor, cell) for cell in way(floor, starts[rng.integers(len(starts))], goal)]


def way(floor: np.ndarray, start: Cell, goal: Cell) -> list[Cell]:
    """Return the cells of a shortest way, both ends among them."""
    left, found = distances(floor, goal), [start]
    while found[-1] != goal:
        found.append(min(entered(floor, found[-1]), key=left.__getitem__))
    return found


def _with(floor: np.ndarray, cell: Cell) -> np.ndarray:
    state = floor.copy()
    state[cell] = HOME if floor[cell] == GOAL else AGENT
    return state
