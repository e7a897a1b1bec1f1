"""Tensor helpers shared by the seams: masked means, group reductions, aggregation of token losses."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]


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


def group_mean(x: Float[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Mean of ``x`` over one's group within ``where``; zero for a group that has none; exact where all are equal."""
    # Measured from the group's least value: else the mean of equal numbers is off by a rounding error, which dividing
    # by an equally small standard deviation would blow up.
    size = int(group.max()) + 1 if group.numel() else 0
    least = torch.full((size,), torch.inf, dtype=x.dtype, device=x.device)
    least = least.scatter_reduce(0, group, torch.where(where, x.detach(), torch.inf), "amin")[group]
    least = torch.where(least.isinf(), 0, least)
    return least + group_sum(x - least, group, where) / group_count(group, where, x.dtype).clamp(min=1)


def group_std(
    x: Float[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"], ddof: int = 1
) -> Float[Tensor, "N"]:
    """Standard deviation of ``x`` over one's group within ``where``; zero where at most ``ddof`` samples count."""
    centred = x - group_mean(x, group, where)
    freedom = group_count(group, where, x.dtype) - ddof
    return torch.where(freedom > 0, group_sum(centred**2, group, where) / freedom.clamp(min=1), 0).sqrt()


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
