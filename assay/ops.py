"""Tensor helpers shared by the seams: masked means, group reductions, log-ratios, aggregation of token losses."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]
Estimator = Literal["k1", "k2", "k3", "k3+"]

IMPOSSIBLE = -1e4
"""Log-probabilities are taken as at least this: a token that became impossible has a finite loss, and no gradient."""


def masked_mean(x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Float[Tensor, ""]:
    """Mean of ``x`` over ``mask``; zero when nothing is masked in."""
    return torch.where(mask, x, 0).sum() / mask.sum().clamp(min=1)


def group_sum(x: Float[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Sum of ``x`` over the samples of one's group that are in ``where``, given back to every sample."""
    size = int(group.max()) + 1 if group.numel() else 0
    total = torch.zeros(size, dtype=x.dtype, device=x.device).index_add_(0, group, torch.where(where, x, 0))
    return total[group]


def group_count(group: Int[Tensor, "N"], where: Bool[Tensor, "N"], dtype: torch.dtype) -> Float[Tensor, "N"]:
    """Number of samples of one's group that are in ``where``, given back to every sample."""
    return group_sum(torch.ones(len(group), dtype=dtype, device=group.device), group, where)


def group_mean(
    x: Float[Tensor, "N"],
    group: Int[Tensor, "N"],
    where: Bool[Tensor, "N"],
    weights: Float[Tensor, "N"] | None = None,
) -> Float[Tensor, "N"]:
    """Mean of ``x`` over one's group within ``where``; zero for a group that has none; exact where all are equal.

    With ``weights`` (not negative) the mean is weighted by them.
    """
    # Measured from the group's least value: else the mean of equal numbers is off by a rounding error, which dividing
    # by an equally small standard deviation would blow up.
    size = int(group.max()) + 1 if group.numel() else 0
    least = torch.full((size,), torch.inf, dtype=x.dtype, device=x.device)
    least = least.scatter_reduce(0, group, torch.where(where, x.detach(), torch.inf), "amin")[group]
    least = torch.where(least.isinf(), 0, least)
    if weights is None:
        return least + group_sum(x - least, group, where) / group_count(group, where, x.dtype).clamp(min=1)
    total = group_sum(weights, group, where)
    return least + group_sum(weights * (x - least), group, where) / torch.where(total > 0, total, 1)


def group_std(
    x: Float[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"], ddof: int = 1
) -> Float[Tensor, "N"]:
    """Standard deviation of ``x`` over one's group within ``where``; zero where at most ``ddof`` samples count."""
    centred = x - group_mean(x, group, where)
    freedom = group_count(group, where, x.dtype) - ddof
    return torch.where(freedom > 0, group_sum(centred**2, group, where) / freedom.clamp(min=1), 0).sqrt()


def whiten(
    x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], epsilon: float = 1e-8, shift_mean: bool = True
) -> Float[Tensor, "N T"]:
    """(x - mean) / sqrt(variance + epsilon) over all of ``mask`` at once; zero outside it, and where all are equal.

    The variance is the unbiased one. With ``shift_mean=False`` the mean is added again after scaling.
    """
    flat = x[mask]
    if flat.numel() == 0:
        return torch.zeros_like(x)
    # Measured from the least value, for the reason given in group_mean.
    least = flat.min()
    mean = least + (flat - least).mean()
    variance = (flat - mean).square().sum() / max(flat.numel() - 1, 1)
    scaled = (x - mean) * torch.rsqrt(variance + epsilon)
    return torch.where(mask, scaled if shift_mean else scaled + mean, 0)


def row_mean(x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Float[Tensor, "N 1"]:
    """Mean of each row over ``mask``; zero for a row without any."""
    return torch.where(mask, x, 0).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)


def outcome(batch: Batch) -> Float[Tensor, "N"]:
    """What a whole response earned: its reward and what was placed on its learnable tokens."""
    if batch.token_rewards is None:
        return batch.rewards
    return batch.rewards + torch.where(batch.mask, batch.token_rewards, 0).sum(-1)


def broadcast(x: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N T"]:
    """One value per sample on each of its learnable tokens, where the sample is active; zero elsewhere."""
    return torch.where(batch.mask & batch.active[:, None], x[:, None], 0)


def log_ratio(
    logprobs: Float[Tensor, "N T"], old: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], limit: float = 20.0
) -> Float[Tensor, "N T"]:
    """log pi - log pi_old on ``mask``, within [-limit, limit] (no gradient at the bounds), zero elsewhere.

    Where pi_old is unknown (NaN: another author's token, or an engine that kept no record) the policy as it stands
    takes its place: the value is 0 and the gradient that of ``logprobs``.
    """
    here = torch.where(mask, logprobs, 0)
    known = torch.where(mask & ~old.isnan(), old, here.detach())
    gap = here - known
    # A token impossible under both (-inf - -inf) says nothing.
    return torch.where(gap.isnan(), 0, gap).clamp(-limit, limit)


def kl_estimate(
    logprobs: Float[Tensor, "N T"], reference: Float[Tensor, "N T"], estimator: Estimator = "k3"
) -> Float[Tensor, "N T"]:
    """Per-token estimate of KL(pi || reference) from tokens sampled by pi.

    With d = log reference - log pi, for k3 at most 20 (beyond it k3 is constant, without gradient):
    k1 = -d (unbiased, no sign), k2 = d^2 / 2, k3 = exp(d) - d - 1 (unbiased, never negative).
    As a *loss*, k1 has zero expected gradient, k2 has the gradient of KL(pi || reference), k3 that of
    KL(reference || pi). ``k3+`` has the value of k3 and the gradient of k2.
    Source: J. Schulman, "Approximating KL divergence" (2020); ``k3+`` as in verl.
    """
    d = reference - logprobs
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d**2 / 2
    bounded = d.clamp(max=20)
    k3 = bounded.exp() - bounded - 1
    if estimator == "k3":
        return k3
    k2 = d**2 / 2
    return k3.detach() + (k2 - k2.detach())


def aggregate(
    loss: Float[Tensor, "N T"], batch: Batch, mode: Aggregation = "token_mean", max_length: int | None = None
) -> Float[Tensor, ""]:
    """Reduce a per-token loss to a scalar; denominators come from ``batch.totals``, so micro-batches add up.

    With m the mask, w the sample weights and B the number of sequences of the mini-batch:

    - ``token_mean``: sum w m l / sum m (DAPO);
    - ``sequence_mean``: 1/B sum_i w_i (sum_t m l / T_i) (GRPO as first published);
    - ``sequence_sum``: 1/B sum_i w_i sum_t m l;
    - ``constant``: sum w m l / (B max_length) (Dr. GRPO).

    Args:
        loss: ``(N, T)``; values outside the mask are ignored, even NaN.
        batch: supplies mask, weights, validity and totals (its own counts when ``totals`` is unset).
        mode: see above.
        max_length: required by ``constant``.
    """
    totals = batch.totals or batch.count()
    weights = torch.where(batch.active, batch.weights, 0).to(loss.dtype)
    masked = torch.where(batch.mask & batch.active[:, None], loss, 0)
    per_sequence = masked.sum(-1)
    if mode == "token_mean":
        return (weights * per_sequence).sum() / max(totals.tokens, 1.0)
    if mode == "sequence_mean":
        return (weights * per_sequence / batch.lengths.clamp(min=1)).sum() / max(totals.sequences, 1.0)
    if mode == "sequence_sum":
        return (weights * per_sequence).sum() / max(totals.sequences, 1.0)
    if max_length is None:
        raise ValueError("aggregation 'constant' needs max_length")
    return (weights * per_sequence).sum() / (max(totals.sequences, 1.0) * max_length)
