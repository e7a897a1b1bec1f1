"""Clip-Cov and KL-Cov: hold back the few tokens whose covariance drives the entropy down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.objectives.clip import check_range, clipped
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import masked_mean
from assay.registry import part


def covariance(
    logprobs: Float[Tensor, "N T"], advantages: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]
) -> Float[Tensor, "N T"]:
    """(log pi - mean log pi)(A - mean A), means over ``mask``; -inf outside it. Detached."""
    logprobs = torch.where(mask, logprobs.detach(), 0)
    product = (logprobs - masked_mean(logprobs, mask)) * (advantages - masked_mean(advantages, mask))
    return torch.where(mask, product, -torch.inf)


def drawn(values: Float[Tensor, "N T"], among: Bool[Tensor, "N T"], count: int) -> Bool[Tensor, "N T"]:
    """Choose ``count`` of ``among`` (all of them, if fewer) as good as at random, by a hash of their values' bits.

    So the draw depends neither on the order of the samples, nor on padding, nor on a generator's state.
    """
    where = among.nonzero()
    if len(where) > count:
        bits = values[among].double().contiguous().view(torch.int64)
        for shift, factor in ((33, -49064778989728563), (33, -4265267296055464877)):
            bits = (bits ^ ((bits >> shift) & ((1 << (64 - shift)) - 1))) * factor
        where = where[bits.argsort(stable=True)[:count]]
    chosen = torch.zeros_like(among)
    chosen[where[:, 0], where[:, 1]] = True
    return chosen


def _old(batch: Batch) -> tuple[Float[Tensor, "N T"], Bool[Tensor, "N T"]]:
    """Log-probabilities of the policy that sampled, and the tokens for which they are known."""
    old = batch.signals.get("policy_logprobs", batch.logprobs)
    return old, batch.mask & batch.active[:, None] & ~old.isnan()


@part("objective", "clip_cov")
@dataclass(frozen=True, slots=True)
class ClipCov(PolicyLoss):
    """The clipped surrogate, a few tokens of high covariance left out.

    l_it as in ``clip``, and 0 for max(1, ``ratio_of_tokens`` x tokens) tokens drawn among those that are not clipped
    and whose covariance, see :func:`covariance`, is between ``low`` and ``high``. Shared terms as in
    :class:`PolicyLoss`.

    The covariance is one of the whole mini-batch. :meth:`prepare`, called on it before it is split, draws the tokens by
    the log-probabilities of the policy that sampled; where it was not called they are drawn among the tokens at hand by
    the current ones, as the authors' code does for each micro-batch.

    Source: "The Entropy Mechanism of RL for Reasoning LMs" (arXiv 2505.22617), equations 11 and 12.

    Args:
        clip_low, clip_high: half-widths of the clip range.
        ratio_of_tokens: share of tokens held back, in (0, 1].
        low, high: range of the covariance they are drawn from.
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    ratio_of_tokens: float = 2e-4
    low: float = 1.0
    high: float = 5.0

    zero_advantage_is_idle = False

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        check_range("clip_cov", self.clip_low, self.clip_high)
        _check_share("clip_cov", self.ratio_of_tokens)

    def prepare(self, batch: Batch) -> None:
        """Draw the tokens of a mini-batch, into ``batch.signals["covariance_selected"]``."""
        old, mask = _old(batch)
        batch.signals["covariance_selected"] = self._draw(covariance(old, batch.advantages, mask), mask)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss = clipped(r.ratio, r.advantages, self.clip_low, self.clip_high)
        cut = loss.detach() > (-r.advantages * r.ratio).detach()
        chosen = r.batch.signals.get("covariance_selected")
        if chosen is None:
            chosen = self._draw(covariance(r.logprobs, r.advantages, r.mask), r.mask, r.mask & ~cut)
        chosen = chosen & ~cut
        held = masked_mean((chosen | cut).to(loss.dtype), r.mask)
        return torch.where(chosen, 0, loss), {"clip_fraction": held}

    def _draw(
        self, values: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], among: Bool[Tensor, "N T"] | None = None
    ) -> Bool[Tensor, "N T"]:
        among = (mask if among is None else among) & (values > self.low) & (values < self.high)
        return drawn(values, among, max(int(self.ratio_of_tokens * int(mask.sum())), 1))

    def words(self) -> tuple[str, str]:
        return "token", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}], some of high covariance"


@part("objective", "kl_cov")
@dataclass(frozen=True, slots=True)
class KLCov(PolicyLoss):
    """l_it = -rho_it A_it, plus ``weight`` |log pi - log pi_old| for the tokens of highest covariance. No clip.

    The max(1, ``ratio_of_tokens`` x tokens) tokens of highest covariance, see :func:`covariance`; which policy's, and
    over which tokens, is as in ``clip_cov``. Shared terms as in :class:`PolicyLoss`.

    Source: "The Entropy Mechanism of RL for Reasoning LMs" (arXiv 2505.22617), equation 13; |log ratio| as the
    divergence, as in the authors' code.

    Args:
        ratio_of_tokens: share of tokens that are penalised, in (0, 1].
        weight: of the penalty.
    """

    ratio_of_tokens: float = 2e-4
    weight: float = 1.0

    zero_advantage_is_idle = False

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        _check_share("kl_cov", self.ratio_of_tokens)

    def prepare(self, batch: Batch) -> None:
        """Choose the tokens of a mini-batch, into ``batch.signals["covariance_selected"]``."""
        old, mask = _old(batch)
        batch.signals["covariance_selected"] = self._highest(covariance(old, batch.advantages, mask), mask)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        chosen = r.batch.signals.get("covariance_selected")
        if chosen is None:
            chosen = self._highest(covariance(r.logprobs, r.advantages, r.mask), r.mask)
        loss = -r.advantages * r.ratio + torch.where(chosen, self.weight * r.log_ratio.abs(), 0)
        return loss, {"kl_cov/fraction": masked_mean(chosen.to(loss.dtype), r.mask)}

    def _highest(self, values: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Bool[Tensor, "N T"]:
        count = int(mask.sum())
        chosen = torch.zeros_like(mask).flatten()
        if count:
            chosen[values.flatten().topk(max(1, int(count * self.ratio_of_tokens))).indices] = True
        return chosen.view_as(mask)

    def words(self) -> tuple[str, str]:
        return "token", "penalty on tokens of high covariance"


def _check_share(name: str, share: float) -> None:
    if not 0 < share <= 1:
        raise UsageError(f"objective {name!r}: ratio_of_tokens {share:g} is outside (0, 1]")
