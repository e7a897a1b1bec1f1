"""A reward that counts only as far as what earned it is any good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import build, part


@part("reward", "corrected")
class Corrected:
    """R = r (u - pivot) + offset, r the verdict's score and u the mean of quality scores on a scale from 1 to 5.

    What has a high score and is no good (u below the pivot) is worth less than what has none. Where a verifier or a
    judge of quality abstains, there is no reward.

    Args:
        quality: verifiers of quality; a score q in [0, 1] is 1 + 4 q.
        pivot, offset: see above.

    Raises:
        UsageError: no verifier of quality.

    Source: GDRO (arXiv 2601.02036), which measures by it against hacked rewards, u of three models.
    """

    def __init__(self, quality: Sequence[str | Mapping[str, Any]], pivot: float = 3.0, offset: float = 0.2):
        if not quality:
            raise UsageError("reward 'corrected': name the verifiers of quality, such as quality=[{name = ...}]")
        self.quality = [build("verify", spec) for spec in quality]
        self.pivot, self.offset = pivot, offset

    def __call__(self, batch: Batch) -> Reward:
        scores = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts])
        quality = torch.zeros_like(scores)
        for row, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            if valid[row]:
                found = [verifier(task, episode.text) for verifier in self.quality]
                valid[row] = all(verdict.passed is not None for verdict in found)
                quality[row] = 1 + 4 * sum(verdict.score for verdict in found) / len(found)
        values = torch.where(valid, scores * (quality - self.pivot) + self.offset, 0)
        return Reward(values, valid=valid, terms={"score": scores, "quality": quality})
