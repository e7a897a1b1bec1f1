"""Prompts whose rewards, of either sign, are mostly of one sign are left out."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import group_mean, outcome
from assay.registry import part


@part("select", "reward_balance")
@dataclass(frozen=True, slots=True)
class RewardBalance:
    """Weight 1 for the samples of prompts with |sum_i R_i| / G <= most, else 0; of the G samples with a reward.

    Where responses are compared with one among them, rewards of one sign say that this one was far better or worse than
    the others, and no more.

    Source: the dynamic sampling of Writing-Zero (arXiv 2506.00103).

    Args:
        most: in [0, 1]; 0.6 in the paper.

    Raises:
        UsageError: ``most`` outside [0, 1].
    """

    most: float = 0.6

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise UsageError(f"select 'reward_balance': most {self.most:g} must lie in [0, 1]")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        mean = group_mean(outcome(batch), batch.prompt_group, batch.active)
        return (mean.abs() <= self.most + 1e-6).to(batch.rewards.dtype)
