"""REINFORCE++: returns whitened over all tokens of the batch instead of within a group."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, outcome, whiten
from assay.registry import part
from assay.returns import placed_rewards, returns_to_go


@part("credit", "reinforce++")
@dataclass(frozen=True, slots=True)
class ReinforcePlusPlus:
    """A_it = (g_it - mean g) / sqrt(var g + epsilon), with g_it = sum_{u >= t} discount^(u - t) r_iu.

    r_iu are the rewards placed on tokens (the ``kl`` reward places -beta k1), plus R_i on the last learnable token;
    mean and unbiased variance go over all learnable tokens of active samples of the batch. One response per prompt will
    do. Tokens that the policy did not write are stepped over.

    Source: REINFORCE++ (arXiv 2501.03262).

    Args:
        discount: per token, in [0, 1].
        epsilon: added to the variance.
    """

    discount: float = 1.0
    epsilon: float = 1e-8

    level = "token"

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "batch mean over tokens", "normalisation": "batch std over tokens"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        returns = returns_to_go(placed_rewards(batch), batch.mask, self.discount)
        return whiten(returns, batch.mask & batch.active[:, None], self.epsilon)


@part("credit", "reinforce++-baseline")
@dataclass(frozen=True, slots=True)
class ReinforcePlusPlusBaseline:
    """A_it = whitened (R_i - mean_g R), whitened over all learnable tokens of active samples as in ``reinforce++``.

    Source: REINFORCE++ (arXiv 2501.03262), variant with the group's mean as baseline.

    Args:
        epsilon: added to the variance.
    """

    epsilon: float = 1e-8

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "batch std over tokens"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = broadcast(rewards - group_mean(rewards, batch.group, batch.active), batch)
        return whiten(centred, batch.mask & batch.active[:, None], self.epsilon)
