"""Potential-based shaping: hints on the way that leave the best policy the best."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "potential")
class PotentialShaping(Around):
    """r_t = discount Phi(s_t+1) - Phi(s_t) on the learnable tokens, beside the outcome; Phi is 0 at start and end.

    Phi(s_t+1) is what ``potential`` places on token t, where it places something (not NaN); between such tokens Phi
    stays as it is. The last learnable token gives Phi back, so that with discount 1 the terms of a response add up to 0
    and every policy keeps its expected reward: what is best stays best, and only how soon it is found may change.

    Source: Ng, Harada and Russell (ICML 1999), theorem 1.

    Args:
        outcome: the reward that is shaped.
        potential: a reward part whose ``tokens`` are the potentials, NaN where it says nothing; without tokens of its
            own nothing is shaped.
        discount: of the potential, in (0, 1].
        weight: of the shaping.

    Raises:
        UsageError: ``discount`` outside (0, 1].
    """

    def __init__(self, potential: Any, outcome: Any = "verdict", discount: float = 1.0, weight: float = 1.0):
        if not 0 < discount <= 1:
            raise UsageError(f"reward 'potential': discount {discount:g} is outside (0, 1]")
        super().__init__({"outcome": outcome, "potential": potential})
        self.discount, self.weight = discount, weight

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        outcome, potential = found["outcome"], found["potential"].tokens
        tokens = outcome.tokens
        if potential is not None:
            shaped = self.weight * differences(potential, batch.mask, self.discount)
            tokens = shaped if tokens is None else tokens + shaped
        return Reward(outcome.values, tokens, valid_in(found, batch), terms_of({"outcome": outcome}))


def differences(potential: torch.Tensor, mask: torch.Tensor, discount: float = 1.0) -> torch.Tensor:
    """Return discount Phi(s_t+1) - Phi(s_t) ``(N, T)``; Phi is 0 before the first learnable token and at the end."""
    if not mask.shape[1]:
        return torch.zeros_like(potential)
    here, out = torch.zeros_like(potential[:, 0]), torch.zeros_like(potential)
    last = mask.shape[1] - 1 - mask.flip(1).to(torch.int64).argmax(1)
    for t in range(mask.shape[1]):
        told = mask[:, t] & ~potential[:, t].isnan()
        after = torch.where(told, torch.nan_to_num(potential[:, t]), here)
        after = torch.where(mask[:, t] & (last == t), 0, after)
        out[:, t] = torch.where(mask[:, t], discount * after - here, 0)
        here = torch.where(mask[:, t], after, here)
    return out
