"""A judge of pairs learns which answer is better, and to say the same in either order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import IMPOSSIBLE
from assay.registry import part


@part("objective", "both_orders")
@dataclass(frozen=True, slots=True)
class BothOrders:
    """L = mean over episodes of -log q_i + weight mean over pairs of (q_1 - q_2)^2,   q the probability of a reply.

    The two episodes of an advantage group are the right replies of rollout ``pair_orders``: that the first is better,
    where it is, and that the second is. Their difference is P(better | shown first) + P(worse | shown first) - 1 for a
    judge who says one or the other, and 0 for one without a liking for a place.

    Source: Pairwise-RL (arXiv 2504.04950); the square and its weight are choices.

    Args:
        weight: not below 0.

    Raises:
        UsageError: ``weight`` below 0.
    """

    weight: float = 1.0

    whole_groups = True
    reads = "nothing"
    ignores_rewards = True

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise UsageError(f"objective 'both_orders': weight {self.weight:g} is below 0")

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        use = batch.active & (batch.lengths > 0)
        totals = batch.totals or batch.count()
        held = torch.where(batch.mask & use[:, None], logprobs, 0).clamp(min=IMPOSSIBLE).sum(-1)
        index = batch.group.unique()
        member = (batch.group[None] == index[:, None]) & use[None]
        member = member[member.sum(1) == 2]
        first, second = member.to(torch.int8).argmax(1), member.shape[1] - 1 - member.flip(1).to(torch.int8).argmax(1)
        gaps = held[first].exp() - held[second].exp()
        value = -held.sum() / max(totals.sequences, 1) + self.weight * gaps.square().sum() / max(totals.groups, 1)
        metrics = {"judge/right": float((held[use].detach().exp() > 0.5).double().mean())}
        if len(gaps):
            metrics["judge/place"] = float(gaps.detach().mean()) / 2
        return Loss(value, metrics)
