"""GMPO: the geometric mean of the tokens' clipped ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.objectives.clip import check_range
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import Aggregation, masked_mean, row_mean
from assay.registry import part


@part("objective", "gmpo")
@dataclass(frozen=True, slots=True)
class GMPO(PolicyLoss):
    """l_it = -A_it exp(mean_t c_it), c_it = min(d_it, clip_high) where A > 0, max(d_it, -clip_low) where A < 0.

    d_it = log pi - log pi_old: each token's log-ratio is clipped on the side that its advantage pushes to, then the
    sequence has their geometric mean. Shared terms as in :class:`PolicyLoss`.

    Source: GMPO (arXiv 2507.20673), with its range of (e^-0.4, e^0.4).

    Args:
        clip_low, clip_high: half-widths of the range of the *log*-ratio.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 0.4
    clip_high: float = 0.4

    reads = "response"

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("gmpo", self.clip_low, self.clip_high)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        d = r.log_ratio
        up, down = d.clamp(max=self.clip_high), d.clamp(min=-self.clip_low)
        chosen = torch.where(r.advantages > 0, up, down)
        ratio = row_mean(chosen, r.mask).exp()
        with torch.no_grad():
            cut = (chosen != d) & (r.advantages != 0)
            share = masked_mean(cut.to(d.dtype), r.mask)
        return -r.advantages * ratio, {"clip_fraction": share}

    def words(self) -> tuple[str, str]:
        clip = f"log-ratio in [-{self.clip_low:g}, {self.clip_high:g}], one side"
        return "sequence, mean of clipped tokens", clip
