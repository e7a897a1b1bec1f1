"""Reasoning counts as far as what there was to be seen was seen; perceiving counts by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.credit.scaled.rescaled import Rescaled
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.reread.perceived import checklist_of, told_of
from assay.types import Task


@part("credit", "perception_gate")
@dataclass(slots=True)
class PerceptionGate(Rescaled):
    """A_it = min(max(p, floor), cap) A'_it of an answer that reasons, and ``weight`` A'_it of one to its checklist

    with p the mean score of the checklist and A' another credit's advantages, each branch a group of its own: with a
    loss that is a mean over responses this is J(reasoning) + ``weight`` J(perception). Reads rollout
    :class:`~assay.rollout.reread.perceived.PerceivedFirst`.

    Args:
        credit: A' (name, table or part).
        cap: above 0, at most 1.
        weight: lambda, at least 0.
        floor: from 0 to ``cap``.

    Raises:
        UsageError: an option out of range; before a run, a task without a checklist; episodes of another rollout.

    Source: PEARL (arXiv 2511.18437). Its authors' code has ``floor = 0.5`` and ``cap = 1``, where the paper has the
    smaller of p and 1/2.
    """

    credit: Any = "grpo"
    cap: float = 0.5
    weight: float = 0.1
    floor: float = 0.0

    rollout = "perceived"

    def __post_init__(self) -> None:
        if not 0 < self.cap <= 1 or self.weight < 0 or not 0 <= self.floor <= self.cap:
            raise UsageError(
                f"credit 'perception_gate': cap {self.cap:g} must be in (0, 1], floor {self.floor:g} from 0 to it, and "
                f"weight {self.weight:g} at least 0"
            )
        Rescaled.__post_init__(self)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            checklist_of(task)

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        told = [told_of(episode, "credit 'perception_gate'") for episode in batch.episodes]
        factors = [self.weight if one.perception else min(max(one.mean, self.floor), self.cap) for one in told]
        found: Tensor = self.credit(batch)
        return found * torch.tensor(factors, dtype=found.dtype, device=found.device)[:, None]
