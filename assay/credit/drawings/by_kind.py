"""Advantages of drawings and of the thoughts before them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.credit.drawings.batch_scaled import BatchScaled
from assay.errors import UsageError
from assay.policies.flow.thinking import drawing_steps
from assay.registry import part


@part("credit", "by_kind")
@dataclass(frozen=True, slots=True)
class ByKind:
    """A thought's tokens and a drawing's steps share their response's advantage, at most ``limit`` for the steps.

    It is group-relative on the scale of the whole batch: :class:`~assay.credit.drawings.batch_scaled.BatchScaled`.

    Args:
        limit: of a step's advantage.
        thoughts: whether thoughts have one; without it they have none.

    Raises:
        UsageError: ``limit`` is not above 0.

    Source: AlphaGRPO (arXiv 2605.12495) and a public copy of its code.
    """

    limit: float = 5.0
    thoughts: bool = True

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        if not self.limit > 0 or math.isnan(self.limit):
            raise UsageError(f"credit 'by_kind': limit {self.limit:g} must be above 0")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "batch std"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        whole = BatchScaled(math.inf)(batch)
        drawn, said = whole.clamp(-self.limit, self.limit), whole if self.thoughts else torch.zeros_like(whole)
        return torch.where(drawing_steps(batch), drawn, said)
