"""What a path through a maze is worth: its points, and a little for form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.puzzles.path_prefix import POINTS


@part("reward", "path_points")
@dataclass(frozen=True, slots=True)
class PathPoints:
    """R_i = points_i + ``moves`` [nothing but moves follows the thought] + ``tags`` tags_i

    of the verdict of :class:`~assay.verify.puzzles.path_prefix.PathPrefix`. Of a path that is wrong, what is right
    before the first mistake is rewarded; of one that is right, twice that.

    Args:
        moves, tags: weights.

    Raises:
        UsageError: before a run, a task that is no path.

    Source: Ariadne (arXiv 2511.00710) and the weights of its authors' script.
    """

    moves: float = 0.1
    tags: float = 0.1

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task.kind != "path_prefix":
                raise UsageError(
                    f"reward 'path_points': task {task.id} is of kind {task.kind!r}, which has no points; take tasks "
                    "of kind 'path_prefix', such as tasks.source=mazes"
                )

    def __call__(self, batch: Batch) -> Reward:
        valid = judged(batch)
        names = {"points": POINTS, "moves": "moves", "tags": "tags"}
        terms = {
            name: torch.tensor([v.parts.get(part) or 0.0 for v in batch.verdicts], dtype=batch.rewards.dtype)
            for name, part in names.items()
        }
        values = terms["points"] + self.moves * terms["moves"] + self.tags * terms["tags"]
        return Reward(values, valid=valid, terms=terms)
