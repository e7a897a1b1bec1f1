"""A weighted sum of rewards, each term logged by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError, nearest
from assay.registry import part
from assay.rewards.spec import name_of
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "weighted")
class WeightedSum(Around):
    """R_i = sum_k w_k R_ik; valid where every term is.

    Args:
        terms: what :func:`assay.rewards.spec.reward_of` takes, by the name it is logged under. Or a list of these,
            where a table may have a ``weight``, and ``as``, its name in the log; else a term is logged under its part's
            or its function's own name, the second of a name with a 2 behind it.
        weights: one number per term; 1 where left out.

    Raises:
        UsageError: a weight is for no term, or is no finite number.
    """

    def __init__(self, terms: Mapping[str, Any] | Sequence[Any], weights: Mapping[str, float] | None = None):
        listed: dict[str, Any] = {}
        if not isinstance(terms, Mapping):
            terms, listed = named(terms)
        for name, weight in (weights or {}).items():
            if name not in terms:
                raise UsageError(f"reward 'weighted' has a weight for {name!r} but no such term{nearest(name, terms)}")
            listed[name] = weight
        for name, weight in listed.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
                raise UsageError(f"reward 'weighted': the weight of {name!r} is {weight!r}, not a finite number")
        super().__init__(terms)
        self.weights = {name: float(listed.get(name, 1.0)) for name in self.inner}

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        values, tokens, terms = torch.zeros_like(batch.rewards), None, terms_of(found)
        for name, reward in found.items():
            values = values + self.weights[name] * reward.values
            if reward.tokens is not None:
                tokens = self.weights[name] * reward.tokens + (0 if tokens is None else tokens)
                terms[name] = reward.values + torch.where(batch.mask, reward.tokens, 0).sum(-1)
        return Reward(values, tokens, valid_in(found, batch), terms)


def named(terms: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the terms of a list by their names in the log, and the weights of those that have one."""
    if isinstance(terms, str):
        raise UsageError(f"reward 'weighted': terms = {terms!r} is no table or list of rewards")
    out: dict[str, Any] = {}
    weights = {}
    for term in terms:
        spec, weight, name = term, None, None
        if isinstance(term, Mapping):
            spec = {k: v for k, v in term.items() if k not in ("weight", "as")}
            weight, name = term.get("weight"), term.get("as")
        base = name = name or name_of(spec)
        while name in out:
            name = f"{base} {sum(k == base or k.startswith(f'{base} ') for k in out) + 1}"
        out[name] = spec
        if weight is not None:
            weights[name] = weight
    return out, weights
