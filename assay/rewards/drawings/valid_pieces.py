"""What a response is worth in pieces, as far as it is valid, and a whole for success."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task, Verdict

EVEN = {"legal": 1.0, "progress": 1.0, "connected": 1.0, "covered": 1.0, "home": 1.0}


@part("reward", "valid_pieces")
@dataclass(frozen=True, slots=True)
class ValidPieces:
    """R_i = validity_i sum_c w_c c_i + ``success`` score_i, of the verdict's score and parts.

    Weights are divided by the sum of those whose part the verdict has, so that puzzles with other components can stand
    in one batch. Where a response rarely succeeds, pieces tell it from others; the baseline without them is
    ``verdict``.

    Args:
        weights: of parts of the verdict, shares in [0, 1], by name.
        validity: name of the part that all of them count as far as.
        success: weight of the score.

    Raises:
        UsageError: a weight that is no number above 0; before a run, tasks that are not judged in such parts.

    Source: VideoRLVR (arXiv 2605.15458).
    """

    weights: Mapping[str, float] = field(default_factory=EVEN.copy)
    validity: str = "validity"
    success: float = 1.0

    def __post_init__(self) -> None:
        if not self.weights or not all(0 < weight < math.inf for weight in self.weights.values()):
            raise UsageError(f"reward 'valid_pieces': weights {dict(self.weights)} must be numbers above 0")

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task.kind != "puzzle_video":
                raise UsageError(
                    f"reward 'valid_pieces': task {task.id} is of kind {task.kind!r}, which has no such parts; take "
                    "tasks of kind 'puzzle_video', such as tasks.source=puzzle_videos"
                )

    def __call__(self, batch: Batch) -> Reward:
        rows = [self._pieces(verdict) for verdict in batch.verdicts]
        dense = torch.tensor(rows, dtype=batch.rewards.dtype)
        score = torch.tensor([verdict.score for verdict in batch.verdicts], dtype=batch.rewards.dtype)
        return Reward(dense + self.success * score, valid=judged(batch), terms={"pieces": dense, "success": score})

    def _pieces(self, verdict: Verdict) -> float:
        found = [(weight, verdict.parts[name] or 0.0) for name, weight in self.weights.items() if name in verdict.parts]
        total = sum(weight for weight, _ in found)
        return (verdict.parts.get(self.validity) or 0.0) * sum(w * c for w, c in found) / total if total else 0.0
