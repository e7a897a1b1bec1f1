"""DPO, SimPO, IPO, NCA and KTO over a group: right against wrong, or better against worse, without a ratio."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import IMPOSSIBLE
from assay.ops.outcome_losses import kto_loss, nca_loss
from assay.registry import part

By = Literal["reward", "verdict"]


def sequence_log_ratio(
    logprobs: Float[Tensor, "N T"], reference: Float[Tensor, "N T"], batch: Batch, average: bool = False
) -> Float[Tensor, "N"]:
    """h_i = sum over learnable tokens of log pi - log pi_ref, or their mean; zero for samples that are not active."""
    mask = batch.mask & batch.active[:, None]
    here, there = (torch.where(mask, x, 0).clamp(min=IMPOSSIBLE) for x in (logprobs, reference))
    gaps = here - there
    total = gaps.sum(-1)
    return total / mask.sum(-1).clamp(min=1) if average else total


def quality(batch: Batch, by: By) -> Float[Tensor, "N"]:
    """What pairs are formed by: the reward, or 1 for a response judged right and 0 for one judged wrong."""
    if by == "reward":
        return batch.rewards
    passed = [float(bool(v.passed)) for v in batch.verdicts]
    return torch.tensor(passed, dtype=batch.rewards.dtype, device=batch.rewards.device)


def pairs(quality: Float[Tensor, "N"], batch: Batch) -> Bool[Tensor, "N N"]:
    """Whether the first is better than the second, both active, with learnable tokens, and of one advantage group."""
    use = batch.active & (batch.lengths > 0)
    together = (batch.group[:, None] == batch.group[None]) & use[:, None] & use[None]
    return together & (quality[:, None] > quality[None])


@runtime_checkable
class TokenRegulariser(Protocol):
    """Adds to the loss of each pair a term on the tokens of its responses."""

    @property
    def needs(self) -> frozenset[Any]: ...

    def __call__(
        self,
        logits: Float[Tensor, "P"],
        better: Int[Tensor, "P"],
        worse: Int[Tensor, "P"],
        logprobs: Float[Tensor, "N T"],
        batch: Batch,
        beta: float,
    ) -> Float[Tensor, "P"]:
        """Return the term for each pair.

        Args:
            logits: of the better response being preferred, as the loss has them.
            better, worse: rows of the pairs.
            logprobs: of the policy, with a gradient.
            batch: of the rows.
            beta: of the loss.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Pairwise(ABC):
    """Mean over groups of the mean over a group's pairs; a group without a pair adds nothing to the numerator.

    Both responses of a pair must be in one micro-batch, so ``whole_groups`` asks that none be split. A ``regulariser``
    adds a term to each pair's loss; it goes with losses that have logits.
    """

    beta: float = 0.1
    by: By = "reward"
    regulariser: TokenRegulariser | None = field(default=None, kw_only=True)

    whole_groups = True
    reads = "nothing"

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise UsageError(f"objective: beta {self.beta:g} must be above 0")
        if self.regulariser is not None and self.logits(torch.zeros(0)) is None:
            raise UsageError(f"objective {type(self).__name__}: a regulariser of tokens goes with dpo and simpo alone")

    @property
    def needs(self) -> frozenset[Any]:
        return self.compared | (frozenset() if self.regulariser is None else self.regulariser.needs)

    @property
    def compared(self) -> frozenset[Any]:
        """What h is relative to."""
        return frozenset({"reference_logprobs"})

    def heights(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Float[Tensor, "N"]:
        """Return h, what two responses are compared by."""
        return sequence_log_ratio(logprobs, batch.signals["reference_logprobs"], batch, self.average())

    def logits(self, margin: Float[Tensor, "P"]) -> Float[Tensor, "P"] | None:
        """Return the logits of the better response being preferred; ``None`` where the loss has none."""
        return None

    @abstractmethod
    def pair_loss(self, better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        """Loss of pairs by the log-ratios of the better and of the worse response."""

    def average(self) -> bool:
        """Whether log-ratios are means over tokens instead of sums."""
        return False

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        better, worse = pairs(quality(batch, self.by), batch).nonzero(as_tuple=True)
        return self.over(better, worse, logprobs, batch)

    def over(
        self,
        better: Int[Tensor, "P"],
        worse: Int[Tensor, "P"],
        logprobs: Float[Tensor, "N T"],
        batch: Batch,
        worth: Float[Tensor, "P"] | None = None,
    ) -> Loss:
        """The loss over pairs of rows, of any number per group, those of a group weighing one in all.

        Args:
            better, worse: rows of the pairs.
            logprobs: of the policy.
            batch: of the rows.
            worth: further weights of the pairs, with a mean of 1 over the step; all 1 if left out.
        """
        h = self.heights(logprobs, batch)
        groups = (batch.totals or batch.count()).groups
        margin = h[better] - h[worse]
        count = torch.bincount(batch.group[better], minlength=1)[batch.group[better]].to(h.dtype)
        weights = (batch.weights[better] * batch.weights[worse]).to(h.dtype) / count
        weights = weights if worth is None else weights * worth.to(h.dtype)
        losses = self.pair_loss(h[better], h[worse])
        if self.regulariser is not None:
            logits = self.logits(margin)
            assert logits is not None
            losses = losses + self.regulariser(logits, better, worse, logprobs, batch, self.beta)
        value = (weights * losses).sum() / max(groups, 1.0)
        # Without a pair the loss is a constant zero; it still has to have a gradient.
        value = value + 0 * h.sum()
        metrics = {"pairs": float(len(margin))}
        if len(margin):
            metrics["preference/accuracy"] = (margin > 0).to(h.dtype).mean().item()
            metrics["preference/margin"] = self.beta * margin.detach().mean().item()
        return Loss(value, metrics)


@part("objective", "dpo")
@dataclass(frozen=True, slots=True)
class DPO(_Pairwise):
    """l = -(1 - e) log sigmoid(beta (h_w - h_l)) - e log sigmoid(-beta (h_w - h_l)), over pairs with R_w > R_l.

    h = sum over learnable tokens of log pi - log pi_ref, e the label smoothing. The loss is the mean over the
    mini-batch's groups of the mean over a group's pairs; advantages are not used, and groups without a pair count as
    zeros (drop them with ``select = "dapo"``).

    Source: DPO (arXiv 2305.18290), equation 7; smoothing from E. Mitchell, "A note on DPO with noisy preferences"
    (2023).

    Args:
        beta: strength of the tie to the reference policy, above 0.
        by: what is better: the higher ``reward``, or a ``verdict`` of right against wrong.
        label_smoothing: e, the assumed share of reversed pairs, in [0, 0.5).
        mean_over_tokens: take h as a mean over tokens: sums grow with the number of turns.
    """

    label_smoothing: float = 0.0
    mean_over_tokens: bool = False

    def average(self) -> bool:
        return self.mean_over_tokens

    def logits(self, margin: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        return self.beta * margin

    def __post_init__(self) -> None:
        _Pairwise.__post_init__(self)
        if not 0 <= self.label_smoothing < 0.5:
            raise UsageError(f"objective 'dpo': label_smoothing {self.label_smoothing:g} is outside [0, 0.5)")

    def pair_loss(self, better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        e, margin = self.label_smoothing, better - worse
        return -(1 - e) * logsigmoid(self.beta * margin) - e * logsigmoid(-self.beta * margin)


@part("objective", "simpo")
@dataclass(frozen=True, slots=True)
class SimPO(_Pairwise):
    """l = -log sigmoid(beta (h_w - h_l) - gamma), h the mean over learnable tokens of log pi: no reference policy.

    Otherwise as ``dpo``.

    Source: SimPO (arXiv 2405.14734), equation 6.

    Args:
        beta: above 0; about 2, as h is a mean.
        by: as in ``dpo``.
        gamma: the margin by which the better response is to be ahead, at least 0.

    Raises:
        UsageError: ``gamma`` below 0.
    """

    beta: float = 2.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        _Pairwise.__post_init__(self)
        if self.gamma < 0:
            raise UsageError(f"objective 'simpo': gamma {self.gamma:g} must be at least 0")

    @property
    def compared(self) -> frozenset[Any]:
        return frozenset()

    def heights(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Float[Tensor, "N"]:
        return sequence_log_ratio(logprobs, torch.zeros_like(logprobs), batch, average=True)

    def logits(self, margin: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        return self.beta * margin - self.gamma

    def pair_loss(self, better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        return -logsigmoid(self.logits(better - worse))


@part("objective", "ipo")
@dataclass(frozen=True, slots=True)
class IPO(_Pairwise):
    """l = (h_w - h_l - 1 / (2 beta))^2 over pairs of a group with R_w > R_l; otherwise as ``dpo``.

    h is the *mean* over learnable tokens by default, as in TRL, whose authors confirmed it with the paper's.

    Source: IPO (arXiv 2310.12036), equation 17.

    Args:
        beta: the paper's tau, above 0.
        by: as in ``dpo``.
        mean_over_tokens: take h as a mean over tokens; ``False`` for the sum, as the paper writes it.
    """

    mean_over_tokens: bool = True

    def average(self) -> bool:
        return self.mean_over_tokens

    def pair_loss(self, better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        return (better - worse - 1 / (2 * self.beta)) ** 2


@part("objective", "nca")
@dataclass(frozen=True, slots=True)
class NCA(_Pairwise):
    """l = -log sigmoid(Q_w) - 1/2 log sigmoid(-Q_w) - 1/2 log sigmoid(-Q_l), Q = beta h, over pairs; else as ``dpo``.

    Source: noise contrastive alignment (arXiv 2402.05369), equation 8 with two responses.

    Args:
        beta: above 0.
        by: as in ``dpo``.
    """

    def pair_loss(self, better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
        return nca_loss(self.beta * better, self.beta * worse)


@part("objective", "kto")
@dataclass(frozen=True, slots=True)
class KTO:
    """The mean of :func:`kto_loss` over the mini-batch's samples, each desirable or not by itself: no pairs are needed.

    h as in ``dpo``. The reference point z = max(0, mean_i h_i) estimates KL(pi || pi_ref), detached. :meth:`prepare`,
    called on a mini-batch before it is split, takes it over the whole of it, with the policy as it was before the
    step's first update; where it was not called, z is taken over the samples at hand with the policy as it is. (The
    paper, and TRL, estimate z from mismatched pairs of prompt and response, because their responses are not the
    policy's own; here they are.)

    Source: KTO (arXiv 2402.01306), equations 7 and 8.

    Args:
        beta: above 0.
        threshold: a sample is desirable if its reward is above this; with ``by="verdict"``, if it was judged right.
        by: ``reward`` or ``verdict``.
        desirable_weight, undesirable_weight: lambda_D and lambda_U.
    """

    beta: float = 0.1
    threshold: float = 0.5
    by: By = "reward"
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0

    needs = frozenset({"reference_logprobs", "policy_logprobs"})
    reads = "nothing"

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise UsageError(f"objective 'kto': beta {self.beta:g} must be above 0")

    def prepare(self, batch: Batch) -> None:
        """Estimate z of a mini-batch, into ``batch.signals["kto_reference_point"]`` ``(N,)``."""
        h = sequence_log_ratio(batch.signals["policy_logprobs"], batch.signals["reference_logprobs"], batch)
        batch.signals["kto_reference_point"] = self._point(h, batch)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        h = sequence_log_ratio(logprobs, batch.signals["reference_logprobs"], batch)
        point = batch.signals.get("kto_reference_point")
        if point is None:
            point = self._point(h.detach(), batch)
        desirable = quality(batch, self.by) > (self.threshold if self.by == "reward" else 0.5)
        losses = kto_loss(h, desirable, point.to(h.dtype), self.beta, self.desirable_weight, self.undesirable_weight)
        use = batch.active & (batch.lengths > 0)
        total = torch.where(use, batch.weights.to(h.dtype) * losses, 0).sum()
        sequences = max((batch.totals or batch.count()).sequences, 1.0)
        return Loss(total / sequences, {"kto/reference_point": point.mean().item() if len(point) else 0.0})

    def _point(self, h: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        use = batch.active & (batch.lengths > 0)
        mean = torch.where(use, h, 0).sum() / use.sum().clamp(min=1)
        return mean.clamp(min=0).expand(len(batch)).clone()
