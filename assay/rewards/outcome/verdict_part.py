"""One part of the verdict as a reward, so that parts can be weighed, gated and bent like any other term."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task


@part("reward", "part")
@dataclass(frozen=True, slots=True)
class VerdictPart:
    """R_i = scale times the verdict's part of that name; no reward where it is ``None`` or the verifier abstained.

    Args:
        part: name of the part, as the verifier's ``parts`` have it.
        missing: value of a verdict that has no such part; ``None``: it has no reward.
        scale: factor.
        kind: of tasks whose verifier says it; others are refused before a run. Empty for any.

    Raises:
        UsageError: no name; before a run, a task of another kind.
        RunError: a part that is not finite; says whose.
    """

    part: str
    missing: float | None = None
    scale: float = 1.0
    kind: str = ""

    def __post_init__(self) -> None:
        if not self.part:
            raise UsageError('reward \'part\' needs the name of a part: {name = "part", part = "..."}')

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if self.kind and task.kind != self.kind:
                raise UsageError(
                    f"reward 'part': task {task.id} is of kind {task.kind!r}; what has {self.part!r} is of kind "
                    f"{self.kind!r}"
                )

    def __call__(self, batch: Batch) -> Reward:
        found = [v.parts.get(self.part, self.missing) for v in batch.verdicts]
        for i, value in enumerate(found):
            if value is not None and not math.isfinite(value):
                raise RunError(f"reward 'part': {self.part!r} of row {i} (task {batch.tasks[i].id}) is {value!r}")
        values = torch.tensor([0.0 if x is None else self.scale * x for x in found], dtype=batch.rewards.dtype)
        told = torch.tensor([x is not None for x in found], dtype=torch.bool)
        return Reward(values, valid=judged(batch) & told, terms={self.part: values})
