"""The verdict's score as reward."""

from __future__ import annotations

import torch

from assay.batch import Batch, Reward
from assay.registry import part


@part("reward", "verdict")
class VerdictReward:
    """R_i = the verdict's score in [0, 1]; a sample whose verifier abstained has no reward (``valid`` false)."""

    def __call__(self, batch: Batch) -> Reward:
        scores = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        return Reward(scores, valid=valid, terms={"verdict": scores})
