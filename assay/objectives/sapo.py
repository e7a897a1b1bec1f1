"""SAPO: a smooth gate in place of the clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import Aggregation, masked_mean
from assay.registry import part


@part("objective", "sapo")
@dataclass(frozen=True, slots=True)
class SAPO(PolicyLoss):
    """l_it = -(4 / tau) sigmoid(tau (rho_it - 1)) A_it, tau by the sign of A; shared terms as in :class:`PolicyLoss`.

    The gradient's weight is 4 s (1 - s) rho with s the sigmoid: 1 at rho = 1, falling smoothly on both sides.

    Source: SAPO (arXiv 2511.20347).

    Args:
        tau_positive, tau_negative: steepness where A > 0, and where A <= 0; above 0.
    """

    aggregation: Aggregation = "sequence_mean"
    tau_positive: float = 1.0
    tau_negative: float = 1.05

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        if self.tau_positive <= 0 or self.tau_negative <= 0:
            raise UsageError("objective 'sapo': tau_positive and tau_negative must be above 0")

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        positive = r.advantages > 0
        tau = torch.where(positive, r.ratio.new_tensor(self.tau_positive), r.ratio.new_tensor(self.tau_negative))
        gate = torch.sigmoid(tau * (r.ratio - 1))
        with torch.no_grad():
            weight = masked_mean(4 * gate * (1 - gate) * r.ratio, r.mask)
        return -4 / tau * gate * r.advantages, {"sapo/gradient_weight": weight}

    def words(self) -> tuple[str, str]:
        clip = f"sigmoid gate, tau {self.tau_positive:g} / {self.tau_negative:g}"
        return "token", clip
