"""The plain policy gradient: no ratio, no clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.registry import part


@part("objective", "reinforce")
@part("objective", "gpg")
@dataclass(frozen=True, slots=True)
class PolicyGradient(PolicyLoss):
    """l_it = -A_it log pi(y_t), shared terms as in :class:`PolicyLoss`.

    Right for one update per batch; in later ones nothing makes up for the policy having moved.

    Source: R. J. Williams (1992); GPG (arXiv 2504.02546) uses it with the ``gpg`` credit.
    """

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        return -r.advantages * r.logprobs, {}

    def words(self) -> tuple[str, str]:
        return "none", "none"
