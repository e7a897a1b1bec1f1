"""Group-relative advantages on the scale of the whole batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import broadcast, group_mean, outcome
from assay.registry import part


@part("credit", "batch_scaled")
@dataclass(frozen=True, slots=True)
class BatchScaled:
    """A_it = clip((R_i - mean_g R) / (std R + epsilon), -limit, limit), the mean of i's group, the deviation of all.

    The deviation is the population's, over the active samples of the batch; zero where every reward is equal.

    Args:
        limit: of an advantage; infinite for none.
        epsilon: added to the deviation.

    Raises:
        UsageError: ``limit`` is not above 0.

    Source: Flow-GRPO's code (arXiv 2505.05470), its "global std".
    """

    limit: float = 5.0
    epsilon: float = 1e-4

    group_relative = True

    def __post_init__(self) -> None:
        if not self.limit > 0 or math.isnan(self.limit):
            raise UsageError(f"credit 'batch_scaled': limit {self.limit:g} must be above 0")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "batch std"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards, active = outcome(batch), batch.active
        centred = rewards - group_mean(rewards, batch.group, active)
        spread = rewards[active].std(unbiased=False) if bool(active.any()) else torch.zeros_like(rewards).sum()
        return broadcast((centred / (spread + self.epsilon)).clamp(-self.limit, self.limit), batch)
