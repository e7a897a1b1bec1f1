"""Penalties for what a judge says: a small one for a wrong verdict, a large one for none."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.outcome.verdict import VerdictReward


@part("reward", "penalties")
@dataclass(frozen=True, slots=True)
class Penalties:
    """R_i = 0 if the verdict passes, ``wrong`` if it does not, ``unreadable`` if nothing could be read in it.

    The last is what a verdict's part ``readable`` says, 0 or 1; without such a part everything can be read. A sample
    whose verifier abstained has no reward.

    Source: Branch-and-Rethink's code (arXiv 2510.23596), where 1 and 2 are ten apart.

    Args:
        wrong, unreadable: see above.
    """

    wrong: float = -10.0
    unreadable: float = -100.0

    def __call__(self, batch: Batch) -> Reward:
        judged = VerdictReward()(batch)
        read = torch.tensor([v.parts.get("readable") != 0 for v in batch.verdicts], dtype=torch.bool)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        missed = torch.where(read, self.wrong, self.unreadable).to(batch.rewards.dtype)
        values = torch.where(right, 0, missed)
        return Reward(values, valid=judged.valid, terms={"right": judged.values, "readable": read.to(values.dtype)})
