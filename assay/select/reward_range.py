"""Prompts whose responses are all worth the same, or nearly, are left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import outcome
from assay.registry import part


@part("select", "reward_range")
@dataclass(frozen=True, slots=True)
class RewardRange:
    """Weight 1 for the samples of prompts with max_i R_i - min_i R_i > delta, else 0; of samples with a reward.

    Source: ORBIT (arXiv 2510.15859).

    Args:
        delta: at least 0.

    Raises:
        UsageError: ``delta`` below 0.
    """

    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not self.delta >= 0:
            raise UsageError(f"select 'reward_range': delta {self.delta:g} is below 0")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        rewards, out = outcome(batch), torch.zeros_like(batch.rewards)
        for group in batch.prompt_group.unique():
            here = (batch.prompt_group == group) & batch.active
            if here.any() and rewards[here].max() - rewards[here].min() > self.delta:
                out[batch.prompt_group == group] = 1
        return out
