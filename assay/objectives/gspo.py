"""The importance ratio of a whole sequence (GSPO), or of each turn of it, clipped as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.objectives.clip import check_range, clip_fraction, clipped
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import Aggregation, row_mean
from assay.registry import part


@part("objective", "gspo")
@dataclass(frozen=True, slots=True)
class GSPO(PolicyLoss):
    """l_it = -min(s_i A_it, clip(s_i, 1 - clip_low, 1 + clip_high) A_it), s_i = exp(mean_t(log pi - log pi_old)).

    The gradient of s_i is s_i / T_i on each token. Shared terms as in :class:`PolicyLoss`.

    Source: GSPO (arXiv 2507.18071), equations 5 to 7.

    Args:
        clip_low, clip_high: half-widths of the clip range; ratios of sequences are far closer to 1 than those of
            tokens.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 3e-4
    clip_high: float = 4e-4

    reads = "response"

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("gspo", self.clip_low, self.clip_high)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        ratio = row_mean(r.log_ratio, r.mask).exp().expand_as(r.log_ratio)
        return _clipped(self, r, ratio)

    def words(self) -> tuple[str, str]:
        return "sequence, geometric mean", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]"


@part("objective", "gspo_token")
@dataclass(frozen=True, slots=True)
class GSPOToken(PolicyLoss):
    """As ``gspo`` with s_it = sg[s_i] pi(y_t) / sg[pi(y_t)], sg the stop of the gradient: each token has its own.

    The same value as ``gspo``, and the same gradient where the advantage does not differ within a response; where it
    does, every token is moved by its own advantage.

    Source: GSPO (arXiv 2507.18071), section 4.3.

    Args:
        clip_low, clip_high: half-widths of the clip range.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 3e-4
    clip_high: float = 4e-4

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("gspo_token", self.clip_low, self.clip_high)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        own = r.logprobs - r.logprobs.detach()
        return _clipped(self, r, (row_mean(r.log_ratio.detach(), r.mask) + own).exp())

    def words(self) -> tuple[str, str]:
        return "sequence, gradient by token", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]"


@part("objective", "turn_ratio")
@dataclass(frozen=True, slots=True)
class TurnRatio(PolicyLoss):
    """l_ik = -min(s_ik A_ik, clip(s_ik, 1 - clip_low, 1 + clip_high) A_ik), s_ik = exp(sum_k(log pi - log pi_old)).

    k are the turns of a response, whose tokens are one action with one probability; a response without turns is one.
    The loss is the mean over a response's turns, then over responses. A_ik is the mean of the advantages of the turn's
    tokens. Shared terms as in :class:`PolicyLoss`.

    Source: iStar (arXiv 2509.19199), its step-level importance ratio.

    Args:
        clip_low, clip_high: half-widths of the clip range.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 0.2
    clip_high: float = 0.2

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("turn_ratio", self.clip_low, self.clip_high)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        place = torch.where(r.mask, r.batch.turn.to(r.mask.device), -1) + 1

        def by_turn(x: Float[Tensor, "N T"]) -> Float[Tensor, "N T"]:
            table = x.new_zeros(len(x), int(place.max()) + 1 if place.numel() else 1)
            return table.scatter_add(1, place, torch.where(r.mask, x, 0)).gather(1, place)

        size = by_turn(torch.ones_like(r.log_ratio)).clamp(min=1)
        ratio = by_turn(r.log_ratio).clamp(-20, 20).exp()
        advantages = torch.where(r.mask, by_turn(r.advantages) / size, 0)
        turns = torch.where(r.mask, 1 / size, 0).sum(-1, keepdim=True).clamp(min=1)
        # A mean over tokens follows; here every turn weighs the same.
        share = r.mask.sum(-1, keepdim=True) / (turns * size)
        bounds = (self.clip_low, self.clip_high)
        fraction = clip_fraction(ratio.detach(), advantages, r.mask, *bounds)
        return share * clipped(ratio, advantages, *bounds), {"clip_fraction": fraction}

    def words(self) -> tuple[str, str]:
        return "turn", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]"


def _clipped(
    part: GSPO | GSPOToken, r: Ratios, ratio: Float[Tensor, "N T"]
) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
    share = clip_fraction(ratio.detach(), r.advantages, r.mask, part.clip_low, part.clip_high)
    return clipped(ratio, r.advantages, part.clip_low, part.clip_high), {"clip_fraction": share}
