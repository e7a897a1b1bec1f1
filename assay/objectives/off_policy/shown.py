"""The clipped surrogate on one's own tokens, and the likelihood of what was shown of a solution."""

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


@part("objective", "shown")
@dataclass(frozen=True, slots=True)
class Shown(ClippedSurrogate):
    """l_it = -weight log pi(y_t) on tokens of origin ``HINT``, whatever the advantage; as ``clip`` on others.

    What fails after a true beginning does not push the beginning down.

    Source: SEELE (arXiv 2509.06923), equation 10.

    Args:
        weight: of the likelihood, not negative.

    Raises:
        UsageError: ``weight`` below 0.
    """

    weight: float = 0.001

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if self.weight < 0:
            raise UsageError(f"objective 'shown': weight {self.weight:g} must not be negative")

    @property
    def zero_advantage_is_idle(self) -> bool:
        return self.weight == 0 and not self.kl_weight and not self.entropy_weight

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        shown = r.mask & written_by(r.batch, Origin.HINT)
        metrics["shown/tokens"] = masked_mean(shown.to(loss.dtype), r.mask)
        return torch.where(shown, -self.weight * r.logprobs, loss), metrics

    def words(self) -> tuple[str, str]:
        ratio, bound = ClippedSurrogate.words(self)
        return f"{ratio}; of what was shown, its likelihood", bound
