"""One response per task, taken as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.inference.base import Answer
from assay.registry import part
from assay.types import Task


@part("inference", "sample")
@dataclass(frozen=True, slots=True)
class Sample:
    """The first of ``samples`` responses is the answer: what a user gets who asks once, whatever the budget.

    Args:
        sampling: how tokens are drawn; temperature 0 is greedy decoding.
    """

    sampling: Sampling = field(default_factory=Sampling)

    def __call__(self, tasks: list[Task], engine: Engine, samples: int, rng: np.random.Generator) -> list[Answer]:
        seeds = rng.integers(2**63, size=len(tasks))
        asked = [Request(task.prompt, 1, self.sampling, int(seed)) for task, seed in zip(tasks, seeds, strict=True)]
        return [Answer(e.text, (e,), len(e.tokens)) for (e,) in engine.generate(asked)]
