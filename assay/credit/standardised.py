"""Mean and standard deviation over the group or over the batch, each chosen by itself; Lite PPO by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, group_std, outcome
from assay.registry import part

Over = Literal["none", "group", "batch"]


@part("credit", "standardised")
@dataclass(frozen=True, slots=True)
class Standardised:
    """A_it = (R_i - mean) / (std + epsilon), the mean over ``mean`` and the deviation of the rewards over ``scale``.

    The default is Lite PPO: the group's mean, the whole batch's deviation, which does not blow up a group where nearly
    all are right. ``mean="group", scale="group"`` is ``grpo``.

    Source: "Tricks or Traps?" (arXiv 2508.08221); the deviation is of the raw rewards, as in TRL's
    ``scale_rewards="batch"``.

    Args:
        mean, scale: ``group``, ``batch``, or ``none`` to leave it out.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: added to the standard deviation.
    """

    mean: Over = "group"
    scale: Over = "batch"
    ddof: int = 1
    epsilon: float = 1e-8

    @property
    def group_relative(self) -> bool:
        return "group" in (self.mean, self.scale)

    @property
    def summary(self) -> dict[str, str]:
        return {
            "baseline": "none" if self.mean == "none" else f"{self.mean} mean",
            "normalisation": "none" if self.scale == "none" else f"{self.scale} std",
        }

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        over = {"group": batch.group, "batch": torch.zeros_like(batch.group)}
        centred = rewards
        if self.mean != "none":
            centred = rewards - group_mean(rewards, over[self.mean], batch.active)
        if self.scale != "none":
            centred = centred / (group_std(rewards, over[self.scale], batch.active, self.ddof) + self.epsilon)
        return broadcast(centred, batch)
