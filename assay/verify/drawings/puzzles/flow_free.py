"""FlowFree in a video: two cells of each colour, to be joined by paths that fill the board."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from assay.verify.drawings.puzzles.cells import EMPTY, WALL, Cell, beside, where
from assay.verify.drawings.puzzles.rules import Progress, Rules


class FlowFree(Rules):
    """A frame may colour empty cells, with the puzzle's colours.

    What is coloured must keep its colour; a frame in which a path runs over another one is no legal move. Worth: the
    share of colours whose cells are a path between its two, and of cells that are coloured.

    Raises:
        ValueError: a colour that has other than two cells, or no colour.
    """

    def __init__(self, first: np.ndarray):
        super().__init__(first)
        self.ends = {int(colour): where(first, int(colour)) for colour in np.unique(first) if colour != EMPTY}
        if not self.ends or WALL in self.ends or any(len(cells) != 2 for cells in self.ends.values()):
            raise ValueError("every colour of a FlowFree board has two cells, and there are no walls")

    def kept(self, state: np.ndarray, before: np.ndarray) -> np.ndarray:
        laid = np.where(self.first != EMPTY, self.first, np.where(np.isin(before, [*self.ends]), before, EMPTY))
        return np.isin(state, [EMPTY, *self.ends]) & ((laid == EMPTY) | (laid == state))

    def read(self, state: np.ndarray) -> np.ndarray:
        known = (self.first == EMPTY) & np.isin(state, [*self.ends])
        return np.where(known, state, self.first)

    def allows(self, board: np.ndarray, after: np.ndarray) -> bool:
        return bool(((board == EMPTY) | (board == after)).all())

    def components(self, progress: Progress, board: np.ndarray) -> dict[str, float]:
        joined = sum(is_path(where(board, colour), *ends) for colour, ends in self.ends.items())
        return {"connected": joined / len(self.ends), "covered": float((board != EMPTY).mean())}

    def solved(self, board: np.ndarray) -> bool:
        return bool((board != EMPTY).all()) and all(is_path(where(board, c), *ends) for c, ends in self.ends.items())

    def marks(self, boards: Sequence[np.ndarray]) -> set[Hashable]:
        last = boards[-1]
        return {(cell, int(last[cell])) for cell in where(self.first, EMPTY) if last[cell] != EMPTY}


def is_path(cells: list[Cell], start: Cell, end: Cell) -> bool:
    """Whether cells are a path from one to another that nowhere touches itself."""
    here = set(cells)
    size = (max(r for r, _ in cells) + 1, max(c for _, c in cells) + 1)
    before, at, seen = None, start, 1
    while at != end:
        ways = [cell for cell in beside(at, size) if cell in here and cell != before]
        if len(ways) != 1:
            return False
        before, at, seen = at, ways[0], seen + 1
    return seen == len(here) and sum(cell in here for cell in beside(end, size)) == 1
