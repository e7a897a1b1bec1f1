"""GPG: mean-centred rewards, scaled up for the samples that teach nothing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, outcome
from assay.registry import part


@part("credit", "gpg")
@dataclass(frozen=True, slots=True)
class GPG:
    """A_it = alpha (R_i - mean_g R), alpha = B / (B - M), M of the B active samples being in groups of equal rewards.

    alpha makes up for the samples whose gradient is zero, so that the step's size does not depend on how many prompts
    are too easy or too hard. (verl divides by the number of samples with a reward other than zero instead of B - M.)

    Source: GPG (arXiv 2504.02546).
    """

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "share of samples in mixed groups"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = torch.where(batch.active, rewards - group_mean(rewards, batch.group, batch.active), 0)
        mixed = torch.isin(batch.group, batch.group[centred != 0]) & batch.active
        alpha = float(batch.active.sum()) / max(float(mixed.sum()), 1.0)
        return broadcast(alpha * centred, batch)
