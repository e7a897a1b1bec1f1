"""Credit for going on: what was earned above what answering right away would have."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_count, group_mean, outcome
from assay.registry import part
from assay.rollout.branched import TERMINATED


@part("credit", "termination_baseline")
@dataclass(frozen=True, slots=True)
class TerminationBaseline:
    """A_it = R_i - mean of R over those of the group that were made to answer, which have zero themselves.

    Those are the active samples with ``meta["role"] = "terminated"``, as the rollout ``branched`` leaves them. A group
    without any is compared with the mean of all its active samples. Nothing is divided by a standard deviation.

    Source: MRT (arXiv 2503.07572), the recipe of its implementation.
    """

    group_relative = True
    rollout = "branched"

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "answers from the same point", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        ended = torch.tensor([e.meta.get("role") == TERMINATED for e in batch.episodes], dtype=torch.bool)
        there = group_count(batch.group, batch.active & ended, rewards.dtype) > 0
        base = torch.where(
            there,
            group_mean(rewards, batch.group, batch.active & ended),
            group_mean(rewards, batch.group, batch.active),
        )
        return broadcast(torch.where(ended, 0, rewards - base), batch)
