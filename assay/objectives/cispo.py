"""CISPO: REINFORCE with a clipped, constant importance weight: no token loses its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import masked_mean
from assay.registry import part


@part("objective", "cispo")
@dataclass(frozen=True, slots=True)
class CISPO(PolicyLoss):
    """l_it = -sg[clip(rho_it, 1 - clip_low, 1 + clip_high)] A_it log pi(y_t), shared terms as in :class:`PolicyLoss`.

    Source: MiniMax-M1 (arXiv 2506.13585), equations 4 and 5, where only the upper bound is active.

    Args:
        clip_low: 1 less the least weight; ``None`` for no lower bound.
        clip_high: the greatest weight less 1. The default bounds the weight by 5 (ScaleRL, and TRL's
            ``epsilon_high=5``).
    """

    clip_low: float | None = None
    clip_high: float = 4.0

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        if self.clip_high < 0 or (self.clip_low or 0) < 0:
            raise UsageError("objective 'cispo': clip_low and clip_high must not be negative")

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        ratio = r.ratio.detach()
        weight = ratio.clamp(None if self.clip_low is None else 1 - self.clip_low, 1 + self.clip_high)
        share = masked_mean((weight != ratio).to(ratio.dtype), r.mask)
        return -weight * r.advantages * r.logprobs, {"clip_fraction": share}

    def words(self) -> tuple[str, str]:
        low = "0" if self.clip_low is None else f"{1 - self.clip_low:g}"
        clip = f"weight in [{low}, {1 + self.clip_high:g}], gradient kept"
        return "token, constant", clip
