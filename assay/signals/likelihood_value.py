"""One number for how likely the reference is, of the log-probabilities of its tokens."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.signals.likelihood import mean_logprob, mean_probability, total_logprob

By = Literal["prob", "avg_prob", "geo_prob", "logprob", "avg_logprob"]


def first(likelihood: Float[Tensor, "N K L"]) -> Float[Tensor, "N L"]:
    """Return what is told after the first prefix; NaN where there is none."""
    return likelihood[:, 0] if likelihood.shape[1] else likelihood.new_full((len(likelihood), 0), torch.nan)


def value(logs: Float[Tensor, "... L"], by: By) -> Float[Tensor, "..."]:
    """Return f, see :class:`assay.rewards.likelihood.reference.LikelihoodReward`; NaN where there is nothing."""
    if by == "prob":
        return total_logprob(logs).exp()
    if by == "logprob":
        return total_logprob(logs)
    if by == "avg_prob":
        return mean_probability(logs)
    return mean_logprob(logs).exp() if by == "geo_prob" else mean_logprob(logs)


def slope(logs: Float[Tensor, "... L"], by: By) -> Float[Tensor, "... L"]:
    """Return df / dl_j, see :class:`assay.rewards.likelihood.reference.LikelihoodReward`; 0 where there is nothing."""
    known = ~logs.isnan()
    share = 1 / known.sum(-1, keepdim=True).clamp(min=1).to(logs.dtype)
    if by == "logprob":
        out = torch.ones_like(logs)
    elif by == "avg_logprob":
        out = share.expand_as(logs)
    elif by == "prob":
        out = total_logprob(logs).exp()[..., None].expand_as(logs)
    elif by == "geo_prob":
        out = share * mean_logprob(logs).exp()[..., None]
    else:
        out = share * logs.exp()
    return torch.where(known, out, 0)
