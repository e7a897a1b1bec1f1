"""The best and the worst by some measure, of each group or of the whole batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import outcome
from assay.registry import part


@part("select", "ranked")
@dataclass(frozen=True, slots=True)
class Ranked:
    """Weight 1 for the ``highest`` and the ``lowest`` by a measure, else 0; ties go to the earlier sample.

    A number of 1 or more is a count, one below 1 a share (rounded to the nearest count, halves up). Only active samples
    are ranked. ``highest=4, lowest=4`` keeps the most different rewards of a group, ``highest=0.2, within="batch"`` the
    top fifth of the batch.

    Args:
        highest, lowest: how many to keep at either end, at least 0.
        by: ``reward``, with what is placed on tokens, or ``length`` in learnable tokens.
        within: ``group`` or ``batch``.

    Raises:
        UsageError: a number is negative, or both are 0.
    """

    highest: float = 0
    lowest: float = 0
    by: Literal["reward", "length"] = "reward"
    within: Literal["group", "batch"] = "group"

    def __post_init__(self) -> None:
        if self.highest < 0 or self.lowest < 0 or self.highest + self.lowest == 0:
            raise UsageError("select 'ranked': highest and lowest must be at least 0, and one of them above it")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        measure = outcome(batch) if self.by == "reward" else batch.lengths.to(batch.rewards.dtype)
        weights = torch.zeros_like(batch.rewards)
        group = batch.group if self.within == "group" else torch.zeros_like(batch.group)
        for one in group[batch.active].unique():
            rows = ((group == one) & batch.active).nonzero()[:, 0]
            order = rows[measure[rows].argsort(stable=True, descending=True)]
            weights[order[: self._count(self.highest, len(rows))]] = 1
            upward = rows[measure[rows].argsort(stable=True)]
            weights[upward[: self._count(self.lowest, len(rows))]] = 1
        return weights

    @staticmethod
    def _count(number: float, size: int) -> int:
        return min(int(number) if number >= 1 else int(number * size + 0.5), size)
