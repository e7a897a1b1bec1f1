"""Advantages of turns along an expert's episode: what a step leads to up to the next mismatch, and the episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import normalise, turns_of
from assay.registry import part


@part("credit", "patched")
@dataclass(frozen=True, slots=True)
class Patched:
    """A_it = A_E + weight A_S, the same on every token of turn t of trajectory i.

        R_t = r_t + discount R_{t+1};  R_t = r_t at a reset, and nothing flows back across it
        A_S = (R_t - mean) / (std + epsilon) over the group's turns of the same index t; 0 for a turn alone there
        A_E = the same of the trajectories' sums of r over the group (``episode = "return"``), or of r_t over all turns
              of the group (``"steps"``, as the authors' code has it)

    r_t is what was placed on the turn's own tokens; all over active samples.

    Args:
        discount: in [0, 1].
        weight: of the step's advantage.
        episode: see above.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: added to the standard deviation.

    Raises:
        UsageError: the discount is out of range.

    Source: UI-S1 (arXiv 2509.11543).
    """

    discount: float = 0.5
    weight: float = 1.0
    episode: Literal["return", "steps"] = "return"
    ddof: int = 1
    epsilon: float = 1e-6

    level = "token"

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise UsageError(f"credit 'patched': discount {self.discount:g} must be in [0, 1]")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean by turn, and of episodes", "normalisation": "group std"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch)
        returns = turns.returns(turns.rewards, self.discount)
        step = normalise(returns, turns.key("turn"), turns.active, "center_std", self.ddof, self.epsilon)
        if self.episode == "steps":
            whole = normalise(turns.rewards, turns.key("task"), turns.active, "center_std", self.ddof, self.epsilon)
        else:
            trajectory = torch.unique(turns.trajectory, return_inverse=True)[1]
            rewards = torch.where(turns.active, turns.rewards, 0)
            total = torch.zeros_like(rewards).index_add_(0, trajectory, rewards)[trajectory]
            # Once for each trajectory: at its last turn, then given to the others.
            once = turns.last & turns.active
            of_last = normalise(total, turns.key("task"), once, "center_std", self.ddof, self.epsilon)
            whole = torch.zeros_like(total).index_add_(0, trajectory, of_last)[trajectory]
        return turns.on_tokens(whole + self.weight * step, batch)
