"""Prompts whose rollouts hardly differ in what their first turns lead to are left out, and replaced."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.groups import group_std
from assay.ops.turns import turns_of
from assay.registry import part


@part("select", "first_return")
@dataclass(slots=True)
class FirstReturn:
    """Weight 0 for the samples of prompts with std(R_0) <= least, else 1.

    R_0 is the return of a rollout's first turn: R_t = r_t + discount R_{t+1}, cut at resets; std is the population's,
    over the prompt's rollouts. With ``rounds`` above 1 other prompts are asked in place of those left out.

    Args:
        least: at least 0.
        discount: in [0, 1], as in the credit.
        rounds: of generation in a step, at least 1; see :func:`assay.learning.step.sample`.

    Raises:
        UsageError: an option out of range.

    Source: UI-S1 (arXiv 2509.11543), with least = 0.3.
    """

    least: float = 0.3
    discount: float = 0.5
    rounds: int = 1
    _kept: float = field(default=1.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.least < 0 or not 0 <= self.discount <= 1 or self.rounds < 1:
            raise UsageError(
                f"select 'first_return': needs least {self.least:g} >= 0, discount {self.discount:g} in [0, 1] and "
                f"rounds {self.rounds} >= 1"
            )

    def keep(self, batch: Batch) -> Bool[Tensor, "N"]:
        """Return which samples of a round are kept."""
        turns = turns_of(batch)
        first = turns.index == 0
        returns = turns.returns(turns.rewards, self.discount)
        prompt = batch.prompt_group[turns.sample]
        spread = group_std(returns, prompt, first & turns.active, ddof=0)
        return torch.isin(batch.prompt_group, prompt[spread > self.least])

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        keep = self.keep(batch)
        groups = batch.prompt_group.unique()
        self._kept = float(batch.prompt_group[keep].unique().numel() / max(1, groups.numel()))
        return keep.to(batch.rewards.dtype)

    def metrics(self) -> dict[str, float]:
        """``first_return/kept``: the share of the step's prompts that were kept."""
        return {"first_return/kept": self._kept}
