"""Advantages of thoughts and of drawings, each from a reward of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.credit.drawings.batch_scaled import BatchScaled
from assay.errors import RunError, UsageError
from assay.policies.flow.thinking import drawing_steps
from assay.registry import part


@part("credit", "by_kind")
@dataclass(frozen=True, slots=True)
class ByKind:
    """A drawing's steps have the advantage of the reward, a thought's tokens that of its term ``thought``.

    Both are group-relative on the scale of the whole batch: :class:`~assay.credit.drawings.batch_scaled.BatchScaled`.

    Args:
        limit: of an advantage.
        thoughts: whether thoughts have one; without it they have none.

    Raises:
        UsageError: ``limit`` is not above 0.
        RunError: the reward has no term ``thought``.

    Source: AlphaGRPO (arXiv 2605.12495).
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
        scaled, steps = BatchScaled(self.limit), drawing_steps(batch)
        drawn = scaled(batch)
        if not self.thoughts:
            return torch.where(steps, drawn, 0)
        if "thought" not in batch.reward_terms:
            raise RunError("credit 'by_kind' wants a reward with a term for thoughts; take reward 'thought_first'")
        rewards, batch.rewards = batch.rewards, batch.reward_terms["thought"].to(batch.rewards)
        try:
            said = scaled(batch)
        finally:
            batch.rewards = rewards
        return torch.where(steps, drawn, said)
