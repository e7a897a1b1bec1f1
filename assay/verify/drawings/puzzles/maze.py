"""A maze in a video: a red block that goes from cell to cell to the green one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

import numpy as np

from assay.verify.drawings.puzzles.cells import EMPTY, GREEN, RED, WALL, YELLOW, Cell, beside, where
from assay.verify.drawings.puzzles.rules import Progress, Rules

AGENT, GOAL, HOME = RED, GREEN, YELLOW
"""Who walks, where to, and both in one cell."""


class Maze(Rules):
    """Cells are the blocks of even rows and columns; the block between two of them is a wall or open.

    Walls and goal must be kept, in each frame one cell has the walker. A move goes to a neighbouring cell with no wall
    between. Worth: the share of ``legal`` moves before the first illegal one, and ``progress``
    1 - d(end of these, goal) / d(start, goal), not below 0, by distances on foot. Measured at the end of the whole
    path, progress would pay for walking through walls.

    Raises:
        ValueError: no walker or no goal, or no way between them.
    """

    def __init__(self, first: np.ndarray):
        super().__init__(first)
        self.floor = _floor(first)
        walkers, goals = where(first, AGENT), where(first, GOAL)
        if len(walkers) != 1 or len(goals) != 1:
            raise ValueError("a maze has one red and one green cell")
        self.start, self.goal = walkers[0], goals[0]
        self.distances = distances(self.floor, self.goal)
        if self.start not in self.distances:
            raise ValueError("the maze has no way from the red cell to the green one")

    def kept(self, state: np.ndarray, before: np.ndarray) -> np.ndarray:
        return _floor(state) == self.floor

    def read(self, state: np.ndarray) -> np.ndarray | None:
        found = where(state, AGENT, HOME)
        if len(found) != 1 or found[0] not in self.distances:
            return None
        board = self.floor.copy()
        board[found[0]] = HOME if found[0] == self.goal else AGENT
        return board

    def allows(self, board: np.ndarray, after: np.ndarray) -> bool:
        return walker(after) in entered(self.floor, walker(board))

    def components(self, progress: Progress, board: np.ndarray) -> dict[str, float]:
        left = self.distances[walker(board)] / self.distances[self.start]
        return {"legal": progress.share, "progress": max(0.0, 1 - left)}

    def solved(self, board: np.ndarray) -> bool:
        return walker(board) == self.goal

    def marks(self, boards: Sequence[np.ndarray]) -> set[Hashable]:
        return {walker(board) for board in boards}


def distances(floor: np.ndarray, goal: Cell) -> dict[Cell, int]:
    """Return how many moves each cell from which there is a way to the goal is away from it."""
    found, queue = {goal: 0}, deque([goal])
    while queue:
        here = queue.popleft()
        for there in entered(floor, here):
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


def entered(floor: np.ndarray, cell: Cell) -> list[Cell]:
    """Return the cells that one move leads to."""
    row, column = cell
    return [(r, c) for r, c in beside(cell, floor.shape, 2) if floor[(row + r) // 2, (column + c) // 2] != WALL]


def _floor(state: np.ndarray) -> np.ndarray:
    """Return the board without its walker."""
    return np.where(state == AGENT, EMPTY, np.where(state == HOME, GOAL, state))


def walker(board: np.ndarray) -> Cell:
    """Return where the walker of a board is."""
    return where(board, AGENT, HOME)[0]
