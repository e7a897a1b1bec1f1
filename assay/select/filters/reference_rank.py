"""Prompts whose reference answer is out of the policy's reach, whatever it thinks first, are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.likelihood_value import first
from assay.signals.likelihoods.reference_ranks import ReferenceRanks


@part("select", "reference_rank")
@dataclass(frozen=True, slots=True)
class ReferenceRank:
    """Weight 0 for a prompt of whose responses none has m_i <= within, else 1.

    m_i is the mean of the ceil(worst L) greatest ranks among the L tokens of the reference after the reasoning of
    response i, the likeliest token of the vocabulary having rank 1. A prompt without a rank is kept.

    Source: Direct Reasoning Optimization (arXiv 2506.13351), the first of its filters; it does not give the numbers.

    Args:
        within: at least 1.
        worst: share of a reference's tokens, in (0, 1].
        ranks: the signal.

    Raises:
        UsageError: an option out of range.
    """

    within: float = 100
    worst: float = 0.1
    ranks: ReferenceRanks = field(default_factory=ReferenceRanks)

    def __post_init__(self) -> None:
        if self.within < 1 or not 0 < self.worst <= 1:
            raise UsageError(
                f"select 'reference_rank': within {self.within:g} must be at least 1, worst {self.worst:g} in (0, 1]"
            )

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.ranks})

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        stay = torch.tensor(self.kept(self.of_prompts(batch)))
        return torch.isin(batch.prompt_group, batch.prompt_group.unique()[stay]).to(batch.rewards.dtype)

    def of_prompts(self, batch: Batch) -> list[float]:
        """Return the least m_i of each prompt; NaN where there is none."""
        means = self.means(first(batch.signals[self.ranks.name]))
        out = []
        for group in batch.prompt_group.unique():
            found = means[batch.prompt_group == group]
            known = found[~found.isnan()]
            out.append(float(known.min()) if len(known) else math.nan)
        return out

    def kept(self, values: Sequence[float]) -> list[bool]:
        return [math.isnan(least) or least <= self.within for least in values]

    def means(self, ranks: Float[Tensor, "N L"]) -> Float[Tensor, "N"]:
        """Return m; NaN where there is no rank."""
        out = torch.full((len(ranks),), torch.nan, dtype=ranks.dtype)
        for i, row in enumerate(ranks):
            known = row[~row.isnan()]
            if len(known):
                count = math.ceil(self.worst * len(known) - 1e-9)
                out[i] = known.sort(descending=True).values[:count].mean() + 1
        return out
