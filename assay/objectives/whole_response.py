"""The clipped surrogate with the ratio of the whole response, which RLOO's view of it as one action asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.objectives.clip import check_range, clip_fraction, clipped
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import Aggregation
from assay.registry import part


@part("objective", "response")
@dataclass(frozen=True, slots=True)
class WholeResponse(PolicyLoss):
    """l_it = -min(R_i A_i, clip(R_i, 1 - clip_low, 1 + clip_high) A_i), R_i = exp(sum_t(log pi - log pi_old)).

    A response is one action, whose ratio is the product of its tokens' ratios; ``gspo`` takes their geometric mean
    instead. The exponent is clamped to [-20, 20]. The gradient of R_i on each token is R_i: with the default
    aggregation, which takes the mean of l_it over the tokens of a response, the loss is the mean over responses of the
    surrogate, and at the policy that sampled its gradient is that of ``reinforce`` with ``sequence_sum``.

    Source: the sequence as an action from Back to Basics (arXiv 2402.14740), the clip of PPO (arXiv 1707.06347),
    equation 7, on it; TRL's ``RLOOTrainer``.

    Args:
        clip_low, clip_high: half-widths of the clip range.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 0.2
    clip_high: float = 0.2

    reads = "response"

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("response", self.clip_low, self.clip_high)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        whole = torch.where(r.mask, r.log_ratio, 0).sum(-1, keepdim=True)
        ratio = whole.clamp(-20, 20).exp().expand_as(r.log_ratio)
        share = clip_fraction(ratio.detach(), r.advantages, r.mask, self.clip_low, self.clip_high)
        return clipped(ratio, r.advantages, self.clip_low, self.clip_high), {"clip_fraction": share}

    def words(self) -> tuple[str, str]:
        return "sequence, product", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]"
