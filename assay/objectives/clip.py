"""The clipped surrogate of PPO, as GRPO uses it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.objectives.kl import Estimator, kl_estimate
from assay.ops import Aggregation, aggregate, masked_mean
from assay.registry import part


@part("objective", "clip")
@dataclass(frozen=True, slots=True)
class ClippedSurrogate:
    """l_it = -min(rho_it A_it, clip(rho_it, 1 - clip_low, 1 + clip_high) A_it) + kl_weight KL_it - entropy_weight H_it.

    rho_it = exp(log pi(y_t) - log pi_old(y_t)), the exponent clamped to [-20, 20]. pi_old are the behaviour
    log-probabilities recorded while sampling (``batch.logprobs``). The gradient is zero where A > 0 and
    rho > 1 + clip_high, or A < 0 and rho < 1 - clip_low. Advantages and pi_old are constants.

    Source: PPO (arXiv 1707.06347), equation 7; GRPO (arXiv 2402.03300), equation 3; separate bounds and the token mean
    from DAPO (arXiv 2503.14476), equation 8.

    Args:
        clip_low, clip_high: half-widths of the clip range, below and above 1.
        aggregation: how token losses become one number, see :func:`assay.ops.aggregate`.
        max_length: denominator of the ``constant`` aggregation.
        kl_weight: weight of the divergence from the reference policy; 0 computes no reference pass.
        kl_estimator: ``k1``, ``k2`` or ``k3``, see :func:`assay.objectives.kl.kl_estimate`.
        entropy_weight: weight of the entropy bonus, nats per token.
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    aggregation: Aggregation = "token_mean"
    max_length: int | None = None
    kl_weight: float = 0.0
    kl_estimator: Estimator = "k3"
    entropy_weight: float = 0.0

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reference_logprobs"} if self.kl_weight else ())

    @property
    def live(self) -> frozenset[str]:
        return frozenset({"entropy"} if self.entropy_weight else ())

    @property
    def zero_advantage_is_idle(self) -> bool:
        """Whether a sample with advantages all zero adds nothing to value and gradient: its pass can be skipped."""
        return not self.kl_weight and not self.entropy_weight

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        mask = batch.mask & batch.active[:, None]
        log_ratio = torch.where(mask, logprobs - batch.logprobs, 0).clamp(-20, 20)
        ratio = log_ratio.exp()
        advantages = batch.advantages
        clipped = ratio.clamp(1 - self.clip_low, 1 + self.clip_high)
        loss = torch.maximum(-advantages * ratio, -advantages * clipped)
        with torch.no_grad():
            above = (advantages > 0) & (ratio > 1 + self.clip_high)
            below = (advantages < 0) & (ratio < 1 - self.clip_low)
            metrics = {
                "clip_fraction": masked_mean((above | below).to(loss.dtype), mask).item(),
                "kl/behaviour": masked_mean(kl_estimate(torch.zeros_like(log_ratio), log_ratio, "k3"), mask).item(),
            }
        if self.kl_weight:
            # What is not learned from is replaced before, not after: the gradient of exp at a NaN would survive a mask.
            here, reference = (torch.where(mask, x, 0) for x in (logprobs, batch.signals["reference_logprobs"]))
            divergence = kl_estimate(here, reference, self.kl_estimator)
            metrics["kl/reference"] = masked_mean(divergence.detach(), mask).item()
            loss = loss + self.kl_weight * divergence
        if self.entropy_weight:
            loss = loss - self.entropy_weight * batch.live["entropy"]
        value = aggregate(loss, batch, self.aggregation, self.max_length)
        return Loss(value, metrics)
