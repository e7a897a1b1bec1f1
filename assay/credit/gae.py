"""Generalised advantage estimation, with a critic's values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import whiten
from assay.registry import build, part
from assay.returns import discounted_sum, packed_left, placed_rewards
from assay.signals.base import Signal


def generalised_advantages(
    rewards: Float[Tensor, "N T"],
    values: Float[Tensor, "N T"],
    mask: Bool[Tensor, "N T"],
    discount: float = 1.0,
    decay: float = 0.95,
) -> tuple[Float[Tensor, "N T"], Float[Tensor, "N T"]]:
    """Return advantages and returns ``(N, T)``, zero outside ``mask``.

    delta_t = r_t + discount V_{t+1} - V_t, A_t = delta_t + discount decay A_{t+1}, return_t = A_t + V_t, where t + 1 is
    the next *learnable* token: both recursions are carried unchanged over tokens in between (a tool's output), and the
    value after the last one is 0.

    Source: arXiv 1506.02438, equation 16.

    Args:
        rewards, values: on learnable tokens; values elsewhere are ignored, even NaN. values are constants.
        discount, decay: gamma and lambda, in [0, 1].
    """
    order, packed = packed_left(mask)
    r, v = (torch.where(packed, x.detach().gather(1, order), 0) for x in (rewards, values))
    delta = r + discount * torch.nn.functional.pad(v[:, 1:], (0, 1)) - v
    advantages = torch.where(packed, discounted_sum(delta, discount * decay), 0)
    back = torch.zeros_like(advantages)
    return back.scatter(1, order, advantages), back.scatter(1, order, torch.where(packed, advantages + v, 0))


@part("credit", "gae")
@dataclass(frozen=True, slots=True)
class GAE:
    """Advantages of :func:`generalised_advantages`, whitened over the learnable tokens of active samples.

    Rewards are those placed on tokens plus R_i on the last learnable token. Reads the critic's values from
    ``batch.signals["values"]`` ``(N, T)`` and leaves its targets, the returns before whitening, in
    ``batch.signals["returns"]``.

    Args:
        critic: the signal ``values`` and how it is learned, see :class:`assay.signals.critic.Critic`.
        discount, decay: gamma and lambda, in [0, 1].
        whitened: subtract the mean over tokens and divide by their standard deviation.

    Raises:
        UsageError: ``discount`` or ``decay`` outside [0, 1].
    """

    discount: float = 1.0
    decay: float = 0.95
    whitened: bool = True
    critic: Any = "critic"
    _critic: Any = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "gae"
    level = "token"

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self._critic})

    def __post_init__(self) -> None:
        object.__setattr__(self, "_critic", build("signal", self.critic))
        for name in ("discount", "decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"credit {self.name!r}: {name} {getattr(self, name):g} is outside [0, 1]")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "critic", "normalisation": "batch std over tokens" if self.whitened else "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        values = batch.signals["values"].to(batch.rewards.dtype)
        advantages, returns = generalised_advantages(
            placed_rewards(batch), values, batch.mask, self.discount, self.decay
        )
        batch.signals["returns"] = returns
        use = batch.mask & batch.active[:, None]
        return whiten(advantages, use) if self.whitened else torch.where(use, advantages, 0)
