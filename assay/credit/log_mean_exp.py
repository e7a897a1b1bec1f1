"""What a sample adds to the log of its group's mean likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, outcome
from assay.registry import part


@part("credit", "log_mean_exp")
@dataclass(frozen=True, slots=True)
class LogMeanExp:
    """A_it = log mean_j exp(R_j) - log mean_{j != i} exp(R_j), over the active samples of the advantage group.

    R are log-likelihoods. The sum over a group of A_i grad log pi(i) then has the expected gradient of the expected
    log-mean: a bound of the log of the mean likelihood that is the tighter the larger the group. A sample without
    active siblings has advantage zero.

    Source: the JEPO objective, as in "Likelihood-Based Reward Designs for General LLM Reasoning" (arXiv 2602.03979).
    """

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "log-mean-exp of the siblings", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        advantages = torch.zeros_like(rewards)
        for group in batch.group[batch.active].unique():
            rows = ((batch.group == group) & batch.active).nonzero()[:, 0]
            g = len(rows)
            if g > 1:
                x = rewards[rows]
                own = torch.eye(g, dtype=torch.bool, device=x.device)
                others = x.expand(g, g).masked_fill(own, -torch.inf).logsumexp(1) - math.log(g - 1)
                advantages[rows] = x.logsumexp(0) - math.log(g) - others
        return broadcast(advantages, batch)
