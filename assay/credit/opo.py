"""OPO: the baseline weighs responses by their length."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, outcome
from assay.registry import part


@part("credit", "opo")
@dataclass(frozen=True, slots=True)
class OPO:
    """A_it = R_i - sum_j T_j R_j / sum_j T_j over the group's active samples, T_j their learnable tokens.

    The baseline of least variance when the squared norm of a response's score grows with its length. A group all of one
    reward has zeros.

    Source: "On-Policy RL with Optimal Reward Baseline" (arXiv 2505.23585).
    """

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean weighted by length", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        baseline = group_mean(rewards, batch.group, batch.active, weights=batch.lengths.to(rewards.dtype))
        return broadcast(rewards - baseline, batch)
