"""How likely the policy finds the reference answer after its own reasoning, as reward: no verifier is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.likelihood import (
    ReferenceLikelihood,
    mean_logprob,
    text_of_reference,
    total_logprob,
)
from assay.signals.likelihood_value import By, first, value
from assay.signals.reasoning import ANSWER, Sections


@part("reward", "likelihood")
@dataclass(frozen=True, slots=True)
class LikelihoodReward:
    """R_i = f(l_i), l_ij = log pi(y*_j | x, reasoning_i, y*_<j) for the L tokens of the reference y*.

    - ``prob``: exp(sum_j l_ij); ``logprob``: sum_j l_ij;
    - ``avg_prob``: mean_j exp(l_ij); ``geo_prob``: exp(mean_j l_ij); ``avg_logprob``: mean_j l_ij.

    Without a reference that is a text or a number, or where it does not fit into the model's context, no reward can be
    told; nor where a verifier abstained, though its verdict plays no part (verifier ``none`` is none).

    Beside f the log has ``avg_logprob``, whatever f is, and ``log_mean_prob``, log mean_i exp(sum_j l_ij) over the
    prompt's responses.

    Args:
        by: f.
        likelihood: l, the first of its places.
        missing: reward of a response that opens no answer where ``likelihood.required``, or does not get to its end
            where an ``unfinished`` one is none; 0 if ``None``.

    Raises:
        UsageError: a logarithm of a likelihood that requires an opened answer, and nothing that a missing one is worth.
    """

    by: By = "prob"
    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)
    missing: float | None = None

    def __post_init__(self) -> None:
        if self.missing is None and self.by in ("logprob", "avg_logprob") and self.likelihood.required:
            raise UsageError(
                f"reward 'likelihood': by = {self.by!r} has no value for a response that opens no answer; "
                "set missing, or likelihood.required = false"
            )

    @property
    def needs(self) -> frozenset[Any]:
        return needed(self.likelihood)

    def __call__(self, batch: Batch) -> Reward:
        logs = first(batch.signals[self.likelihood.name])
        valid, absent = told(batch, logs, self.likelihood)
        values = torch.where(absent, self.missing or 0.0, value(logs, self.by).nan_to_num(0)).to(batch.rewards.dtype)
        terms = {self.by: values, "opened": (~absent).to(values.dtype)}
        if self.by != "avg_logprob":
            # What training runs are compared by whatever f is: the log-likelihood of the reference per token.
            terms["avg_logprob"] = mean_logprob(logs).nan_to_num(0).to(values.dtype)
        terms["log_mean_prob"] = together(total_logprob(logs), batch.prompt_group).to(values.dtype)
        return Reward(torch.where(valid, values, 0), valid=valid, terms=terms)


def needed(likelihood: ReferenceLikelihood) -> frozenset[Any]:
    """Return the signals that :func:`told` reads."""
    asks = likelihood.open is None and _asks(likelihood)
    return frozenset({likelihood, *([Sections(None, likelihood.close, likelihood.unfinished)] if asks else [])})


def _asks(likelihood: ReferenceLikelihood) -> bool:
    """Whether a response without an answer has no likelihood."""
    return likelihood.required and likelihood.after in ("reasoning", "steps", "tokens")


def told(
    batch: Batch,
    logs: Float[Tensor, "N L"],
    likelihood: ReferenceLikelihood,
) -> tuple[Bool[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return for which samples a reward can be told, and which of all opened no answer where one is required."""
    known = (~logs.isnan()).any(-1)
    referenced = torch.tensor([bool(text_of_reference(t)) for t in batch.tasks], dtype=torch.bool)
    if not _asks(likelihood):
        closed = torch.zeros_like(known)
    elif likelihood.open is None:
        closed = ~(batch.signals["sections"] == ANSWER).any(-1)
    else:
        closed = torch.tensor([likelihood.open not in e.text for e in batch.episodes], dtype=torch.bool)
    if _asks(likelihood) and not likelihood.unfinished:
        closed |= torch.tensor([e.truncated for e in batch.episodes], dtype=torch.bool)
    absent = closed & ~known
    return judged(batch) & referenced & (known | absent), absent


def together(total: Float[Tensor, "N"], group: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Return log mean_i exp(l_i) over the samples of each one's group that have an l; 0 where none has.

    It estimates the log-likelihood of the reference with the reasoning summed out, from below.
    """
    out = torch.zeros_like(total)
    for one in group.unique():
        known = total[(group == one) & ~total.isnan()]
        if len(known):
            out[group == one] = known.logsumexp(0) - math.log(len(known))
    return out
