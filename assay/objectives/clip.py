"""The clipped surrogate of PPO, as GRPO uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import UsageError
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import masked_mean
from assay.registry import part


def clipped(
    ratio: Float[Tensor, "N T"], advantages: Float[Tensor, "N T"], low: float, high: float, dual: float | None = None
) -> Float[Tensor, "N T"]:
    """-min(rho A, clip(rho, 1 - low, 1 + high) A), and where A < 0 at most -dual A."""
    loss = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - low, 1 + high))
    if dual is None:
        return loss
    return torch.where(advantages < 0, torch.minimum(loss, -dual * advantages), loss)


def clip_fraction(
    ratio: Float[Tensor, "N T"],
    advantages: Float[Tensor, "N T"],
    mask: Bool[Tensor, "N T"],
    low: float,
    high: float,
    dual: float | None = None,
) -> Tensor:
    """Share of tokens whose gradient :func:`clipped` has set to zero."""
    above = (advantages > 0) & (ratio > 1 + high)
    below = (advantages < 0) & (ratio < 1 - low)
    beyond = (advantages < 0) & (ratio > dual) if dual is not None else torch.zeros_like(above)
    return masked_mean((above | below | beyond).to(ratio.dtype), mask)


def check_range(name: str, low: float, high: float) -> None:
    """Raise UsageError unless both half-widths of a clip range are positive or zero."""
    if low < 0 or high < 0:
        raise UsageError(f"objective {name!r}: clip_low {low:g} and clip_high {high:g} must not be negative")


@part("objective", "clip")
@dataclass(frozen=True, slots=True)
class ClippedSurrogate(PolicyLoss):
    """l_it = -min(rho_it A_it, clip(rho_it, 1 - clip_low, 1 + clip_high) A_it), shared terms as in :class:`PolicyLoss`.

    rho_it = exp(log pi(y_t) - log pi_old(y_t)), the exponent clamped to [-20, 20]. The gradient is zero where A > 0 and
    rho > 1 + clip_high, or A < 0 and rho < 1 - clip_low; with ``dual_clip`` c also where A < 0 and rho > c, the loss
    being at most -c A there.

    Source: PPO (arXiv 1707.06347), equation 7; GRPO (arXiv 2402.03300), equation 3; separate bounds and the token mean
    from DAPO (arXiv 2503.14476), equation 8; dual clip from arXiv 1912.09729. TRL's ``delta`` is the dual clip.

    Args:
        clip_low, clip_high: half-widths of the clip range, below and above 1.
        dual_clip: bound of the ratio where A < 0, above 1 + clip_high; ``None`` for no such bound.
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = None

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("clip", self.clip_low, self.clip_high)
        if self.dual_clip is not None and self.dual_clip <= 1:
            raise UsageError(f"objective 'clip': dual_clip {self.dual_clip:g} must be above 1")

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        bounds = (self.clip_low, self.clip_high, self.dual_clip)
        return (
            clipped(r.ratio, r.advantages, *bounds),
            {"clip_fraction": clip_fraction(r.ratio.detach(), r.advantages, r.mask, *bounds)},
        )

    def words(self) -> tuple[str, str]:
        dual = f", {self.dual_clip:g} where A < 0" if self.dual_clip else ""
        clip = f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]{dual}"
        return "token", clip
