"""Rewards that count only behind others: a cascade of gates, and an order of Pareto fronts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "cascade")
class Cascade(Around):
    """R_i = r_1 + 1[r_1 > g_1] (r_2 + 1[r_2 > g_2] (r_3 + ...)): what comes first opens the gate for the rest.

    Rewards on tokens of a member count only behind its open gates too.

    Args:
        terms: reward parts in order of priority, by the name they are logged under.
        gates: the threshold of each but the last; 0 where left out.

    Raises:
        UsageError: no terms, or a gate for no term.
    """

    def __init__(self, terms: Mapping[str, Any], gates: Mapping[str, float] | None = None):
        if not terms:
            raise UsageError("reward 'cascade' needs terms")
        if unknown := sorted(set(gates or {}) - set(terms)):
            raise UsageError(f"reward 'cascade' has a gate for {unknown[0]!r} but no such term")
        super().__init__(terms)
        self.gates = {name: float((gates or {}).get(name, 0.0)) for name in terms}

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        values, opened = torch.zeros_like(batch.rewards), torch.ones_like(batch.valid)
        tokens = None
        for name, reward in found.items():
            values = values + torch.where(opened, reward.values, 0)
            if reward.tokens is not None:
                placed = torch.where(opened[:, None], reward.tokens, 0)
                tokens = placed if tokens is None else tokens + placed
            opened = opened & (reward.values > self.gates[name])
        return Reward(values, tokens, valid_in(found, batch), terms_of(found))


@part("reward", "pareto")
class Pareto(Around):
    """R_i = 1 - f_i / F: f_i is the front of sample i among its prompt's, from 0, F the number of fronts.

    A sample is in the first front if no other is at least as good in every term and better in one; it is in front k if
    only samples of earlier fronts are better so. No weights between the terms are needed.

    Args:
        terms: reward parts, by the name they are logged under; larger is better.
    """

    def __init__(self, terms: Mapping[str, Any]):
        super().__init__(terms)

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        valid = valid_in(found, batch)
        table = torch.stack([r.values for r in found.values()], 1)
        values = torch.zeros_like(batch.rewards)
        for group in batch.prompt_group.unique().tolist():
            rows = ((batch.prompt_group == group) & valid).nonzero()[:, 0]
            front = fronts(table[rows])
            values[rows] = (1 - front / (front.max() + 1)).to(values) if len(rows) else values[rows]
        return Reward(values, valid=valid, terms=terms_of(found) | {"pareto": values})


def fronts(table: torch.Tensor) -> torch.Tensor:
    """Return the Pareto front, from 0, of each row of ``(n, terms)``."""
    better = (table[:, None] >= table[None]).all(-1) & (table[:, None] > table[None]).any(-1)  # [i, j]: i beats j
    front = torch.full((len(table),), -1)
    k = 0
    while bool((front < 0).any()):
        open_ = front < 0
        front[open_ & ~(better & open_[:, None]).any(0)] = k
        k += 1
    return front
