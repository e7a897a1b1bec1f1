"""The clipped surrogate on one's own tokens, and a shaped probability on those that others wrote."""

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


@part("objective", "shaped")
@dataclass(frozen=True, slots=True)
class Shaped(ClippedSurrogate):
    """l_it = -f(p_it) A_it with f(p) = p / (p + gamma) on tokens of origin ``TEACHER``, as ``clip`` on all others.

    p is the policy's probability, with its gradient: f'(p) = gamma / (p + gamma)^2, so that of unlikely tokens the
    gradient is larger than that of p itself (at p -> 0 by 1 / gamma) and of likely ones smaller. No ratio is taken to
    whoever wrote them, and nothing is clipped.

    Source: policy shaping of LUFFY (arXiv 2504.14945).

    Args:
        gamma: above 0.

    Raises:
        UsageError: ``gamma`` not above 0.
    """

    gamma: float = 0.1

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if self.gamma <= 0:
            raise UsageError(f"objective 'shaped': gamma {self.gamma:g} must be above 0")

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        theirs = r.mask & written_by(r.batch, Origin.TEACHER)
        # Those of one's own may be anything: the gradient of exp at what overflows would survive being left out.
        probability = torch.where(theirs, r.logprobs, 0).exp()
        loss = torch.where(theirs, -shaped(probability, self.gamma) * r.advantages, loss)
        with torch.no_grad():
            metrics["others/tokens"] = masked_mean(theirs.to(loss.dtype), r.mask)
            if bool(theirs.any()):
                metrics["others/probability"] = masked_mean(probability, theirs)
        return loss, metrics

    def words(self) -> tuple[str, str]:
        ratio, bound = ClippedSurrogate.words(self)
        return f"{ratio}; of others, a shaped probability", bound


def shaped(probability: Float[Tensor, "N T"], gamma: float) -> Float[Tensor, "N T"]:
    """f(p) = p / (p + gamma)."""
    return probability / (probability + gamma)
