"""Puzzles to be solved in a video: mazes, FlowFree, Sokoban."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.media import pillow
from assay.policies.flow.samples import pixels_text
from assay.registry import part
from assay.tasks.drawings.puzzles import flow_free, mazes, sokoban
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task
from assay.verify.drawings.puzzles.cells import Puzzle, render, text

MAKERS: dict[str, Callable[[np.random.Generator, int, int], list[np.ndarray]]] = {
    "maze": mazes.make,
    "flow_free": flow_free.make,
    "sokoban": sokoban.make,
}


@part("tasks", "puzzle_videos")
@dataclass(frozen=True, slots=True)
class PuzzleVideos:
    """Endless puzzles, told in letters, whose solutions are videos: the first frame is the puzzle, then a move a frame.

    Which puzzle it is goes round. The model's ``shape`` is ``[frames, side * pixels, side * pixels, 3]``; frames after
    the last move are like it.

    Args:
        seed: >= 0.
        puzzles: which.
        side: cells on a side of a board; of a maze, cells and what is between them, an odd number.
        frames: of a video; a solution has so many moves less one at most.
        pixels: on a side of a cell.

    Raises:
        UsageError: an option out of range, or no Pillow.

    Source: VideoRLVR (arXiv 2605.15458), whose planners draw a configuration, solve it and render the states.
    """

    seed: int = 0
    puzzles: tuple[Puzzle, ...] = ("maze", "flow_free", "sokoban")
    side: int = 5
    frames: int = 9
    pixels: int = 4

    def __post_init__(self) -> None:
        check_seed("tasks 'puzzle_videos'", self.seed)
        if not self.puzzles:
            raise UsageError("tasks 'puzzle_videos': puzzles is empty; name maze, flow_free or sokoban")
        if not 3 <= self.side <= 7 or ("maze" in self.puzzles and self.side % 2 == 0):
            raise UsageError(f"tasks 'puzzle_videos': side {self.side} must be 3 to 7, and odd for a maze")
        if not 2 <= self.frames <= 64 or not 1 <= self.pixels <= 64:
            raise UsageError(
                f"tasks 'puzzle_videos': frames {self.frames} must be 2 to 64, pixels {self.pixels} 1 to 64"
            )
        pillow()

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        puzzle = self.puzzles[check_index(index, None) % len(self.puzzles)]
        states = _solved(puzzle, self.seed, index, self.side, self.frames)
        return Task(
            id=f"puzzle_videos/{self.seed}/{index}",
            prompt=f"{puzzle}\n{text(states[0])}",
            reference={"puzzle": puzzle, "solution": states.tolist()},
            kind="puzzle_video",
            solution=pixels_text(render(states, self.pixels)),
            meta={"source": "puzzle_videos", "category": puzzle},
        )


@functools.lru_cache(maxsize=4096)
def _solved(puzzle: Puzzle, seed: int, index: int, side: int, frames: int) -> np.ndarray:
    states = MAKERS[puzzle](generator(seed, index), side, frames - 1)
    return np.stack(states + [states[-1]] * (frames - len(states)))
