"""Masked means, reductions over groups, whitening, what a response earned, one value per sample on its tokens."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch


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
