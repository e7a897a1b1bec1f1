"""One part of the verdict as a reward, so that parts can be weighed, gated and bent like any other term."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rewards.judged import judged


@part("reward", "part")
@dataclass(frozen=True, slots=True)
class VerdictPart:
    """R_i = scale times the verdict's part of that name; no reward where it is ``None`` or the verifier abstained.

    Args:
        part: name of the part, as the verifier's ``parts`` have it.
        missing: value of a verdict that has no such part; ``None``: it has no reward.
        scale: factor.

    Raises:
        UsageError: no name.
        RunError: a part that is not finite; says whose.
    """

    part: str
    missing: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.part:
            raise UsageError('reward \'part\' needs the name of a part: {name = "part", part = "..."}')

    def __call__(self, batch: Batch) -> Reward:
        found = [v.parts.get(self.part, self.missing) for v in batch.verdicts]
        for i, value in enumerate(found):
            if value is not None and not math.isfinite(value):
                raise RunError(f"reward 'part': {self.part!r} of row {i} (task {batch.tasks[i].id}) is {value!r}")
        values = torch.tensor([0.0 if x is None else self.scale * x for x in found], dtype=batch.rewards.dtype)
        told = torch.tensor([x is not None for x in found], dtype=torch.bool)
        return Reward(values, valid=judged(batch) & told, terms={self.part: values})
