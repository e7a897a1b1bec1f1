"""Samples of which a term of the reward is out of range are left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError, nearest
from assay.registry import part


@part("select", "reward_term")
@dataclass(frozen=True, slots=True)
class RewardTerm:
    """Weight 1 for samples with least <= term <= most, else 0.

    Args:
        term: its name in the log, without ``reward/``.
        least, most: see above.

    Raises:
        UsageError: ``least`` above ``most``.
        RunError: the reward has no such term.
    """

    term: str
    least: float = -math.inf
    most: float = math.inf

    def __post_init__(self) -> None:
        if not self.least <= self.most:
            raise UsageError(f"select 'reward_term': least {self.least:g} is above most {self.most:g}")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        if self.term not in batch.reward_terms:
            raise RunError(
                f"select 'reward_term': the reward has no term {self.term!r}{nearest(self.term, batch.reward_terms)}"
            )
        values = batch.reward_terms[self.term]
        return ((values >= self.least) & (values <= self.most)).to(batch.rewards.dtype)
