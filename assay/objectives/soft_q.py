"""Soft Q-learning: the logits are values, and the policy is their softmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import IMPOSSIBLE, Aggregation, aggregate, masked_mean
from assay.registry import part
from assay.returns import packed_left, placed_rewards


@part("objective", "soft_q")
@dataclass(frozen=True, slots=True)
class SoftQ:
    """l_it = (Q_t - sg[r_t + discount V_{t+1}])^2, where the logit z of a token is its value.

        Q_t = z_t(y_t)      V_t = temperature log sum_v exp(z_t(v) / temperature) = z_t(y_t) - temperature log pi(y_t)

    V is that of the response's next learnable token, 0 after the last; sg is the stop of the gradient. r_t are the
    rewards placed on tokens and, on the last one, the response's; advantages are not read. At the fixed point with
    discount 1, pi draws a response with probability proportional to exp(reward / temperature). A softmax leaves a
    constant of its logits open, which this fixes, so that a pretrained model's logits first have to become values.

    Source: soft Q-learning (arXiv 1702.08165), its Bellman equation for discrete actions; for text as in "Text
    Generation with Efficient (Soft) Q-Learning" (arXiv 2106.07704), one step at a time.

    Args:
        temperature: of sampling, above 0; it is also the entropy's weight.
        discount: in [0, 1].
        aggregation: how token losses become one number, see :func:`assay.ops.aggregate`.
        max_length: denominator of the ``constant`` aggregation.

    Raises:
        UsageError: an option out of range, or ``constant`` without ``max_length``.
    """

    temperature: float = 1.0
    discount: float = 1.0
    aggregation: Aggregation = "token_mean"
    max_length: int | None = None

    reads = "nothing"
    live = frozenset({"logit"})

    def __post_init__(self) -> None:
        if self.temperature <= 0 or not 0 <= self.discount <= 1:
            raise UsageError("objective 'soft_q': temperature must be above 0 and discount in [0, 1]")
        if self.aggregation == "constant" and (self.max_length is None or self.max_length < 1):
            raise UsageError("objective 'soft_q': aggregation = \"constant\" needs max_length, the longest response")

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        mask = batch.mask & batch.active[:, None]
        q, logp = (torch.where(mask, x, 0).clamp(min=IMPOSSIBLE) for x in (batch.live["logit"], logprobs))
        value = (q - self.temperature * logp).detach()
        target = placed_rewards(batch).to(q.dtype) + self.discount * _next(value, mask)
        error = torch.where(mask, q - target, 0)
        loss = aggregate(error.square(), batch, self.aggregation, self.max_length)
        return Loss(loss, {"bellman/error": masked_mean(error.detach().abs(), mask).item()})


def _next(x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Float[Tensor, "N T"]:
    """The value of ``x`` at a row's next token within ``mask``, 0 at its last one and outside."""
    order, packed = packed_left(mask)
    left = torch.where(packed, x.gather(1, order), 0)
    shifted = torch.cat([left[:, 1:], left.new_zeros(len(left), min(1, left.shape[1]))], dim=1)
    return torch.zeros_like(x).scatter(1, order, torch.where(packed, shifted, 0))
