"""Group-relative advantages: a response is compared with its siblings."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, group_std, outcome
from assay.registry import part


@part("credit", "grpo")
@dataclass(frozen=True, slots=True)
class GRPO:
    """Standardised reward within the group, the same on every token of the response.

    A_it = (R_i - mean_g R) / (std_g R + epsilon), over the active samples of the advantage group g; zero when all
    rewards of the group are equal. R_i includes what was placed on the response's tokens. With ``normalise=False`` the
    division is left out (Dr. GRPO).

    Source: DeepSeekMath (arXiv 2402.03300), section 4.1; unbiased standard deviation as in the common implementations.

    Args:
        normalise: divide by the group's standard deviation.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: added to the standard deviation.
    """

    normalise: bool = True
    ddof: int = 1
    epsilon: float = 1e-6

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "group std" if self.normalise else "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = rewards - group_mean(rewards, batch.group, batch.active)
        if self.normalise:
            centred = centred / (group_std(rewards, batch.group, batch.active, self.ddof) + self.epsilon)
        return broadcast(centred, batch)
