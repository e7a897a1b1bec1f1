"""A weighted sum of rewards, each term logged by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError, nearest
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "weighted")
class WeightedSum(Around):
    """R_i = sum_k w_k R_ik; valid where every term is.

    Args:
        terms: reward parts (names, tables or parts already made), by the name they are logged under.
        weights: one number per term; 1 where left out.

    Raises:
        UsageError: a weight is for no term.
    """

    def __init__(self, terms: Mapping[str, Any], weights: Mapping[str, float] | None = None):
        for name in weights or {}:
            if name not in terms:
                raise UsageError(f"reward 'weighted' has a weight for {name!r} but no such term{nearest(name, terms)}")
        super().__init__(terms)
        self.weights = {name: float((weights or {}).get(name, 1.0)) for name in self.inner}

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        values, tokens, terms = torch.zeros_like(batch.rewards), None, terms_of(found)
        for name, reward in found.items():
            values = values + self.weights[name] * reward.values
            if reward.tokens is not None:
                tokens = self.weights[name] * reward.tokens + (0 if tokens is None else tokens)
                terms[name] = reward.values + torch.where(batch.mask, reward.tokens, 0).sum(-1)
        return Reward(values, tokens, valid_in(found, batch), terms)
