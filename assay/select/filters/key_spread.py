"""Prompts to whose reference answer the reasoning makes no difference are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihood_value import first


@part("select", "key_spread")
@dataclass(frozen=True, slots=True)
class KeySpread:
    """Weight 0 for the floor(drop B) of B prompts left, of a step or of the data, whose max_j sigma_j is least, else 1.

    sigma_j is the standard deviation over a prompt's responses of the log-probability of the reference's token j. A
    prompt with fewer than two likelihoods has spread 0; of equals the later ones go first.

    Args:
        drop: share, in [0, 1).
        likelihood: the signal.

    Raises:
        UsageError: ``drop`` out of range.
    """

    drop: float = 0.25
    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)

    def __post_init__(self) -> None:
        if not 0 <= self.drop < 1:
            raise UsageError(f"select 'key_spread': drop {self.drop:g} must be in [0, 1)")

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.likelihood})

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        left = torch.isin(batch.prompt_group.unique(), batch.prompt_group[batch.weights != 0])
        spread = [value for value, here in zip(self.of_prompts(batch), left.tolist(), strict=True) if here]
        stay = batch.prompt_group.unique()[left][torch.tensor(self.kept(spread), dtype=torch.bool)]
        return torch.isin(batch.prompt_group, stay).to(batch.rewards.dtype)

    def of_prompts(self, batch: Batch) -> list[float]:
        """Return max_j sigma_j of each prompt."""
        logs = first(batch.signals[self.likelihood.name])
        counts = (~logs.isnan()).any(-1) & batch.valid
        out = []
        for group in batch.prompt_group.unique():
            rows = logs[(batch.prompt_group == group) & counts]
            known = rows[:, ~rows.isnan().any(0)] if len(rows) > 1 else rows[:0]
            out.append(float(known.std(0, correction=0).max()) if known.numel() else 0.0)
        return out

    def kept(self, values: Sequence[float]) -> list[bool]:
        order = sorted(range(len(values)), key=lambda i: -values[i])
        stay = set(order[: len(values) - int(self.drop * len(values) + 1e-9)])
        return [i in stay for i in range(len(values))]
