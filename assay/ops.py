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


def discounted_sum(x: Float[Tensor, "N T"], discount: float) -> Float[Tensor, "N T"]:
    """y_t = sum_{u >= t} discount^(u - t) x_u, in log2(T) passes."""
    y, reach = x, 1
    while reach < x.shape[1]:
        # y holds the sums of ``reach`` terms; twice as many are one such sum and the next one behind it, discounted.
        y = y + discount**reach * torch.nn.functional.pad(y[:, reach:], (0, reach))
        reach *= 2
    return y


def packed_left(
    mask: Bool[Tensor, "N T"],
) -> tuple[Int[Tensor, "N T"], Bool[Tensor, "N T"]]:
    """Return the order that brings every row's masked tokens to the left, and the mask in that order.

    ``x.gather(1, order)`` packs; ``torch.zeros_like(x).scatter(1, order, packed)`` puts back.
    """
    order = torch.argsort(~mask, dim=1, stable=True)
    return order, mask.gather(1, order)


def outcome(batch: Batch) -> Float[Tensor, "N"]:
    """What a whole response earned: its reward and what was placed on its learnable tokens."""
    if batch.token_rewards is None:
        return batch.rewards
    return batch.rewards + torch.where(batch.mask, batch.token_rewards, 0).sum(-1)


def placed_rewards(batch: Batch) -> Float[Tensor, "N T"]:
    """Rewards by token: those placed on learnable tokens, and the response's own on the last learnable one."""
    there = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    last = torch.where(batch.mask, there, -1).amax(-1, keepdim=True) if batch.mask.shape[1] else there.new_zeros(0, 1)
    placed = torch.where(there == last, batch.rewards[:, None], 0)
    return placed if batch.token_rewards is None else placed + torch.where(batch.mask, batch.token_rewards, 0)


def returns_to_go(
    rewards: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], discount: float = 1.0
) -> Float[Tensor, "N T"]:
    """Discounted sum of the rewards from a token on, along learnable tokens only: others are stepped over."""
    order, packed = packed_left(mask)
    sums = discounted_sum(torch.where(packed, rewards.gather(1, order), 0), discount)
    return torch.zeros_like(rewards).scatter(1, order, torch.where(packed, sums, 0))


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
