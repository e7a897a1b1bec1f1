"""Rewards by token, and what they add up to from a token on."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch


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


def placed_rewards(batch: Batch) -> Float[Tensor, "N T"]:
    """Rewards by token: those placed on learnable tokens, and the response's own on the last learnable one."""
    if batch.mask.shape[1] == 0:
        return torch.zeros_like(batch.advantages)
    there = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    last = torch.where(batch.mask, there, -1).amax(-1, keepdim=True)
    placed = torch.where(there == last, batch.rewards[:, None], 0)
    return placed if batch.token_rewards is None else placed + torch.where(batch.mask, batch.token_rewards, 0)


def returns_to_go(
    rewards: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], discount: float = 1.0
) -> Float[Tensor, "N T"]:
    """Discounted sum of the rewards from a token on, along learnable tokens only: others are stepped over."""
    order, packed = packed_left(mask)
    sums = discounted_sum(torch.where(packed, rewards.gather(1, order), 0), discount)
    return torch.zeros_like(rewards).scatter(1, order, torch.where(packed, sums, 0))
