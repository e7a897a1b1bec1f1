"""Sokoban in a video: who pushes boxes to their places."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from assay.verify.drawings.puzzles.cells import BLUE, CYAN, EMPTY, GREEN, RED, WALL, YELLOW, beside, where
from assay.verify.drawings.puzzles.rules import Progress, Rules

AGENT, PLACE, BOX, AGENT_ON, BOX_ON = RED, GREEN, BLUE, YELLOW, CYAN
"""Who pushes, where boxes belong, a box; and the first and the last on a place."""


class Sokoban(Rules):
    """A move takes the pusher to a neighbouring cell; a box there goes on to the next one, which must be free.

    Walls and places must be kept, in each frame are one pusher and as many boxes as at first. Worth: the share of
    ``legal`` moves before the first illegal one, and of boxes that are ``home`` at the end of these.

    Raises:
        ValueError: not one pusher, no box, or fewer places than boxes.
    """

    def __init__(self, first: np.ndarray):
        super().__init__(first)
        self.floor, self.boxes = floor(first), len(where(first, BOX, BOX_ON))
        if len(where(first, AGENT, AGENT_ON)) != 1 or not 1 <= self.boxes <= len(where(self.floor, PLACE)):
            raise ValueError("a Sokoban board has one pusher, a box, and a place for every box")

    def kept(self, state: np.ndarray, before: np.ndarray) -> np.ndarray:
        return floor(state) == self.floor

    def read(self, state: np.ndarray) -> np.ndarray | None:
        pushers, boxes = where(state, AGENT, AGENT_ON), where(state, BOX, BOX_ON)
        if len(pushers) != 1 or len(boxes) != self.boxes or any(self.floor[c] == WALL for c in pushers + boxes):
            return None
        board = self.floor.copy()
        for cells, plain, on in ((pushers, AGENT, AGENT_ON), (boxes, BOX, BOX_ON)):
            for cell in cells:
                board[cell] = on if self.floor[cell] == PLACE else plain
        return board

    def allows(self, board: np.ndarray, after: np.ndarray) -> bool:
        return any(np.array_equal(after, following) for following in moves(board))

    def components(self, progress: Progress, board: np.ndarray) -> dict[str, float]:
        return {"legal": progress.share, "home": len(where(board, BOX_ON)) / self.boxes}

    def solved(self, board: np.ndarray) -> bool:
        return not where(board, BOX)

    def marks(self, boards: Sequence[np.ndarray]) -> set[Hashable]:
        pushers = {("pusher", cell) for board in boards for cell in where(board, AGENT, AGENT_ON)}
        return pushers | {("box", cell) for board in boards for cell in where(board, BOX, BOX_ON)}


def moves(state: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the boards that one move leads to."""
    [here] = where(state, AGENT, AGENT_ON)
    for there in beside(here, state.shape):
        if state[there] == WALL:
            continue
        after = state.copy()
        if state[there] in (BOX, BOX_ON):
            beyond = (2 * there[0] - here[0], 2 * there[1] - here[1])
            if beyond not in beside(there, state.shape) or state[beyond] not in (EMPTY, PLACE):
                continue
            after[beyond] = BOX if state[beyond] == EMPTY else BOX_ON
        after[there] = AGENT_ON if state[there] in (PLACE, BOX_ON) else AGENT
        after[here] = PLACE if state[here] == AGENT_ON else EMPTY
        yield after


def floor(state: np.ndarray) -> np.ndarray:
    """Return the board without pusher and boxes."""
    return np.where(np.isin(state, [AGENT, BOX]), EMPTY, np.where(np.isin(state, [AGENT_ON, BOX_ON]), PLACE, state))
