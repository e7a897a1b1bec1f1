"""Leave-one-out: a response is compared with the mean of its siblings."""

from __future__ import annotations

from dataclasses import dataclass

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
    without active siblings has nothing to be compared with: its advantage is zero.

    Source: "Back to Basics" (arXiv 2402.14740); Kool et al., "Buy 4 REINFORCE samples" (2019).
    """

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "mean of the siblings", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        size = group_count(batch.group, batch.active, rewards.dtype)
        centred = rewards - group_mean(rewards, batch.group, batch.active)
        return broadcast(centred * size / (size - 1).clamp(min=1), batch)
