"""The clipped surrogate on one's own responses, and on those that a teacher went on with a weight by the advantage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.origins import written_by
from assay.objectives.policy_loss import Ratios
from assay.ops import masked_mean
from assay.registry import part
from assay.types import Origin

RARE = 0.01
"""A token less likely than this whose advantage is below 0 has the clipped ratio."""


@part("objective", "advantage_shaped")
@dataclass(frozen=True, slots=True)
class AdvantageShaped(ClippedSurrogate):
    """l_it = -A_it p_it / sg[d_it] on tokens of origin ``TEACHER``, as ``clip`` on others.

    d = sg[p] + g(A) with g(A) = shift x clip(A / scale, -1, 1); where that is below 0 d is p / 1.0001, where it is
    above 1 p / 0.9999. So p / d is near 1, less where A > 0 and p is not large against g, a little more where A < 0;
    its gradient in log p is itself. Tokens with A < 0 and p < 0.01 have the clipped ratio that others have.

    Source: advantage-aware shaping of ThinkTuning (arXiv 2508.07616).

    Args:
        shift, scale: above 0.
        as_released: g = -shift whatever the advantage, as the bounds of the clip stand in the authors' code.

    Raises:
        UsageError: ``shift`` or ``scale`` not above 0.
    """

    shift: float = 1e-3
    scale: float = 4.0
    as_released: bool = False

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if min(self.shift, self.scale) <= 0:
            raise UsageError(
                f"objective 'advantage_shaped': shift {self.shift:g} and scale {self.scale:g} must be above 0"
            )

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        theirs = r.mask & written_by(r.batch, Origin.TEACHER)
        p = torch.where(theirs, r.logprobs, 0).exp()
        shaped = theirs & ~((r.advantages < 0) & (p < RARE))
        loss = torch.where(shaped, -r.advantages * self.weight(p, r.advantages), loss)
        metrics["others/tokens"] = masked_mean(theirs.to(loss.dtype), r.mask)
        return loss, metrics

    def weight(self, p: Float[Tensor, "N T"], advantages: Float[Tensor, "N T"]) -> Float[Tensor, "N T"]:
        """p / sg[d], with the gradient of p."""
        here = p.detach()
        bend = -torch.ones_like(here) if self.as_released else (advantages / self.scale).clamp(-1, 1)
        d = here + self.shift * bend
        d = torch.where(d < 0, here / 1.0001, torch.where(d > 1, here / 0.9999, d))
        return p / torch.where(d == 0, 1, d)

    def words(self) -> tuple[str, str]:
        ratio, bound = ClippedSurrogate.words(self)
        return f"{ratio}; of a teacher's, a probability shifted by the advantage", bound
