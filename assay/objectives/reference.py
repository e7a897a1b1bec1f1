"""The policy gradient of a reward that itself depends on the policy: the likelihood of the reference answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.objectives.policy_gradient import PolicyGradient
from assay.objectives.policy_loss import PolicyLoss
from assay.ops import IMPOSSIBLE, Aggregation
from assay.registry import part
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihood_value import By, first, slope, value
from assay.signals.reasoning import Continuation


@part("objective", "reference")
@dataclass(frozen=True, slots=True)
class ReferenceGradient(PolicyGradient):
    """L = 1/B sum_i [ -sum_t A_it log pi(z_it) - weight sum_j c_ij log pi(y*_j | x, z_i, y*_<j) ].

    z_i is a sampled response and y* the reference answer, which was not sampled: the likelihood of y* after the
    reasoning of z_i is computed with a gradient. Where the reward is R_i = f(l_i), l the log-probabilities of y*, the
    gradient of E[R] has both terms, with A_i the advantages on the reasoning and c_ij = df / dl_ij. A and c are
    constants, of the policy before the step's update. Right for one update per batch.

    c_ij by ``coefficient``: ``gradient``: df / dl_ij, of ``jepo`` the softmax of the log-likelihoods over the active
    samples of the advantage group; ``advantage``: A_i of the response's first learnable token; ``one``: 1. Samples
    without a likelihood add nothing. With aggregation ``constant`` the second term is divided by ``max_length`` too.

    Args:
        by: f: one of :class:`assay.rewards.likelihood.reference.LikelihoodReward`'s, or ``jepo``, the log of the
            group's mean likelihood, for advantages of the credit ``log_mean_exp``.
        coefficient: see above.
        weight: of the second term; 0 leaves it out, and its pass.
        likelihood: where y* stands; the one of the reward.

    Raises:
        UsageError: a likelihood of another model, temperature or of more than one place than the gradient's.
    """

    aggregation: Aggregation = "sequence_sum"
    by: By | Literal["jepo"] = "prob"
    coefficient: Literal["gradient", "advantage", "one"] = "gradient"
    weight: float = 1.0
    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)

    def __post_init__(self) -> None:
        PolicyLoss.__post_init__(self)
        here = self.likelihood
        if here.model != "policy" or here.temperature is not None or here.after in ("steps", "tokens"):
            raise UsageError(
                "objective 'reference': its likelihood must be the policy's, at the temperature of sampling, and after "
                "one place of the response"
            )

    @property
    def needs(self) -> frozenset[Any]:
        own = {self.likelihood, Continuation(self.likelihood, "tokens"), Continuation(self.likelihood, "at")}
        return frozenset(PolicyLoss.needs.__get__(self) | (own if self.weight else set()))

    @property
    def live(self) -> frozenset[str]:
        return frozenset(PolicyLoss.live.__get__(self) | ({"continuation_logprobs"} if self.weight else set()))

    @property
    def zero_advantage_is_idle(self) -> bool:
        return False

    def prepare(self, batch: Batch) -> None:
        """Put the constants c ``(N, L)`` of a mini-batch into its signals, as ``reference_slopes``."""
        if self.weight:
            batch.signals["reference_slopes"] = self.slopes(batch)
            batch.whole |= {"reference_slopes"}

    def slopes(self, batch: Batch) -> Float[Tensor, "N L"]:
        """Return c, see above."""
        logs = first(batch.signals[self.likelihood.name])
        known = ~logs.isnan()
        if self.coefficient == "one":
            return known.to(logs.dtype)
        if self.coefficient == "advantage":
            there = batch.mask.to(torch.int64).argmax(-1, keepdim=True) if batch.mask.shape[1] else None
            given = logs.new_zeros(len(logs), 1) if there is None else batch.advantages.gather(1, there).to(logs.dtype)
            return torch.where(known, given, 0)
        if self.by != "jepo":
            return slope(logs, self.by)
        counts = batch.active & known.any(-1)
        total = torch.where(counts, value(logs, "logprob").nan_to_num(0), -torch.inf)
        share = torch.zeros_like(total)
        for group in batch.group[counts].unique():
            rows = ((batch.group == group) & counts).nonzero()[:, 0]
            share[rows] = total[rows].softmax(0)
        return torch.where(known, share[:, None], 0)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss = PolicyGradient.__call__(self, logprobs, batch)
        if not self.weight:
            return loss
        constants = batch.signals["reference_slopes"].to(logprobs.dtype)
        told = self.told(batch, constants.shape[1])
        weights = torch.where(batch.active, batch.weights, 0).to(told.dtype)
        direct = (constants * told).sum(-1)
        sequences = max((batch.totals or batch.count()).sequences, 1.0)
        if self.aggregation == "constant":
            assert self.max_length is not None
            sequences *= self.max_length
        loss.value = loss.value - self.weight * (weights * direct).sum() / sequences
        loss.metrics["reference/logprob"] = float(told.detach().sum(-1).mean())
        return loss

    def told(self, batch: Batch, width: int) -> Float[Tensor, "N L"]:
        """Return log pi(y*_j | ...) with a gradient, 0 where there is nothing."""
        found = batch.live["continuation_logprobs"]
        if not width or not found.numel():
            return found.new_zeros(len(batch), width)
        known = ~first(batch.signals[self.likelihood.name]).isnan()
        # Of a continuation, the last tokens are the reference's.
        skipped = (batch.signals["continuations"][:, 0] >= 0).sum(-1, keepdim=True) - known.sum(-1, keepdim=True)
        cells = (skipped + torch.arange(width, device=found.device)).clamp(0, found.shape[2] - 1)
        return torch.where(known, found[:, 0].gather(1, cells), 0).clamp(min=IMPOSSIBLE)
