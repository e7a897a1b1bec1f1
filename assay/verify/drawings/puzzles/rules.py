"""What all puzzles in videos share: how far a video keeps to the rules, and what counts from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a video keeps to the rules.

    Attributes:
        validity: share of cells, over all frames, that are as they must be; those of the first frame as in the puzzle.
        end: last frame of the legal prefix, which begins with the puzzle and ends before the first illegal move; -1 if
            the video does not begin with it.
        legal, moves: moves before the first illegal one, and all of them; a frame like the one before it is no move.
        whole: whether all cells are as they must be and all moves legal.
    """

    validity: float
    end: int
    legal: int
    moves: int
    whole: bool

    @property
    def share(self) -> float:
        """Of the moves, those before the first illegal one; 0 where nothing moves."""
        return self.legal / self.moves if self.moves else 0.0


class Rules(ABC):
    """The rules of one puzzle, given by its first board ``(R, C)``.

    A frame is read for what moves in it; what must not change is the puzzle's own, whatever the frame shows, so that no
    wall is walked through where it was left out.
    """

    def __init__(self, first: np.ndarray):
        self.first = first

    @abstractmethod
    def kept(self, state: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return which cells ``(R, C)`` are as they must be, ``before`` being the frame before."""

    @abstractmethod
    def read(self, state: np.ndarray) -> np.ndarray | None:
        """Return the puzzle's board with what moves where a frame has it; ``None`` if that cannot be told."""

    @abstractmethod
    def allows(self, board: np.ndarray, after: np.ndarray) -> bool:
        """Whether a move leads from one board that was read to another one."""

    @abstractmethod
    def components(self, progress: Progress, board: np.ndarray) -> Mapping[str, float]:
        """Return what a video is worth, shares in [0, 1], ``board`` being that at the end of the legal prefix."""

    @abstractmethod
    def solved(self, board: np.ndarray) -> bool:
        """Whether a board is the puzzle's solution."""

    @abstractmethod
    def marks(self, boards: Sequence[np.ndarray]) -> set[Hashable]:
        """Return what boards have drawn, to be compared with what the solution's have."""

    def follow(self, states: np.ndarray) -> tuple[Progress, list[np.ndarray | None]]:
        """Return how far frames ``(F, R, C)`` keep to the rules, and the boards that they are read as."""
        boards = [self.read(state) for state in states]
        kept = [states[0] == self.first]
        kept += [self.kept(now, before) for before, now in pairwise(states)]
        steps = list(pairwise(boards))
        moved = [a is None or b is None or not np.array_equal(a, b) for a, b in steps]
        end = 0 if boards[0] is not None and np.array_equal(boards[0], self.first) else -1
        while 0 <= end < len(steps):
            board, after = steps[end]
            if moved[end] and (board is None or after is None or not self.allows(board, after)):
                break
            end += 1
        every = np.stack(kept)
        whole = bool(every.all()) and end == len(steps)
        return Progress(float(every.mean()), end, sum(moved[: max(end, 0)]), sum(moved), whole), boards
