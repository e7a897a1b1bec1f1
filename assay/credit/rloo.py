"""Leave-one-out: a response is compared with the mean of its siblings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_count, group_mean, outcome
from assay.registry import part


@part("credit", "rloo")
@dataclass(frozen=True, slots=True)
class RLOO:
    """A_it = R_i - mean_{j != i} R_j = G / (G - 1) (R_i - mean_g R), over the active samples of the group.

    The baseline does not depend on the sample, so the expected gradient is that of the expected reward. A sample
    without active siblings has nothing to be compared with: its advantage is zero. With ``normalise`` it is divided by
    the standard deviation of the siblings, the population's, where they are not all alike.

    Source: "Back to Basics" (arXiv 2402.14740); Kool et al., "Buy 4 REINFORCE samples" (2019); the deviation as in
    NeMo-RL.

    Args:
        normalise: see above.
    """

    normalise: bool = False

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "mean of the siblings", "normalisation": "siblings' std" if self.normalise else "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        size = group_count(batch.group, batch.active, rewards.dtype)
        centred = rewards - group_mean(rewards, batch.group, batch.active)
        advantages = centred * size / (size - 1).clamp(min=1)
        if self.normalise:
            spread = siblings_std(rewards, batch)
            advantages = torch.where(spread > 0, advantages / spread, advantages)
        return broadcast(advantages, batch)


def siblings_std(rewards: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
    """Return the population's standard deviation over each sample's active siblings; just 0 where these are alike."""
    siblings = (batch.group[:, None] == batch.group) & batch.active & ~torch.eye(len(rewards), dtype=torch.bool)
    count = siblings.sum(1).clamp(min=1)
    # Measured from the least, so that no rounding makes a deviation of equal rewards.
    least = torch.where(siblings, rewards, torch.inf).amin(1, keepdim=True)
    above = torch.where(siblings, rewards - least, 0)
    mean = (above.sum(1) / count)[:, None]
    return (torch.where(siblings, above - mean, 0).square().sum(1) / count).sqrt()
