"""Whether a video solves a puzzle, and how much of it is right."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.policies.flow.samples import frames
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.drawings.puzzles.cells import LETTERS, parse
from assay.verify.drawings.puzzles.flow_free import FlowFree
from assay.verify.drawings.puzzles.maze import Maze
from assay.verify.drawings.puzzles.rules import Rules
from assay.verify.drawings.puzzles.sokoban import Sokoban

RULES: dict[str, type[Rules]] = {"maze": Maze, "flow_free": FlowFree, "sokoban": Sokoban}


@part("verify", "puzzle_video")
@dataclass(frozen=True, slots=True)
class PuzzleVideo:
    """Reads a video, one ``data:`` URL a line, as boards; right if it is the puzzle solved by the rules.

    A task's reference has the ``puzzle``'s name and a ``solution``, boards ``(F, R, C)`` of which the first is the
    puzzle. The verdict's parts: ``validity``, the share of cells that are as they must be; what it is worth by its
    rules (:class:`~.maze.Maze`, :class:`~.flow_free.FlowFree`, :class:`~.sokoban.Sokoban`), nothing if the video
    does not begin with it; ``precision``, ``recall`` and ``f1`` of what is drawn against the solution's.

    Args:
        tolerance: how far red, green and blue of a cell's mean may be from its colour's, of 255; a cell that is
            further off from all colours cannot be read.

    Raises:
        UsageError: a tolerance below 0 or above 127.

    Source: VideoRLVR (arXiv 2605.15458) for puzzles and measures.
    """

    tolerance: float = 100.0

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance <= 127:
            raise UsageError(f"verifier 'puzzle_video': tolerance {self.tolerance:g} must be 0 to 127")

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            rules, solution = read_puzzle(task.reference)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            return Verdict.abstain(f"the task's reference is no puzzle with a solution: {error}", "tests")
        pictures, (rows, columns) = frames(response), rules.first.shape
        states = None if pictures is None else parse(pictures, rows, columns, self.tolerance)
        if states is None:
            return Verdict.wrong(f"not a video of {rows} x {columns} cells")
        return judge(rules, states, solution)


def read_puzzle(reference: object) -> tuple[Rules, np.ndarray]:
    """Return the rules and the solution ``(F, R, C)`` of a task's reference.

    Raises:
        ValueError, TypeError, KeyError, OverflowError: it is no puzzle.
    """
    if not isinstance(reference, dict):
        raise TypeError(f"{type(reference).__name__} has no puzzle")
    solution = np.array(reference["solution"], dtype=np.int64)
    if solution.ndim != 3 or not solution.size or not ((solution >= 0) & (solution < len(LETTERS))).all():
        raise ValueError("its solution is no boards")
    return RULES[reference["puzzle"]](solution[0]), solution


def judge(rules: Rules, states: np.ndarray, solution: np.ndarray) -> Verdict:
    """Return the verdict on boards ``(F, R, C)``, those of the solution being ``(F', R, C)``."""
    progress, boards = rules.follow(states)
    told = [board for board in boards if board is not None]
    end = boards[progress.end] if progress.end >= 0 else None
    last = boards[-1]
    solved = progress.whole and last is not None and rules.solved(last)
    parts = {"validity": progress.validity}
    for name, worth in rules.components(progress, rules.first if end is None else end).items():
        parts[name] = 0.0 if end is None else worth
    overlap = _overlap(rules.marks(told) if told else set(), rules.marks(list(solution)))
    said = f"{progress.legal} of {progress.moves} moves before the first illegal one"
    return Verdict(float(solved), solved, {**parts, **overlap}, said)


def _overlap(found: set[Hashable], wanted: set[Hashable]) -> dict[str, float]:
    both = len(found & wanted)
    return {
        "precision": both / len(found) if found else 0.0,
        "recall": both / len(wanted) if wanted else 0.0,
        "f1": 2 * both / (len(found) + len(wanted)) if found or wanted else 0.0,
    }
