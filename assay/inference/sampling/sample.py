"""One response per task, taken as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.registry import part
from assay.types import Task


@part("inference", "sample")
@dataclass(frozen=True, slots=True)
class Sample:
    """One response is the answer: what a user gets who asks once, whatever the budget.

    Args:
        sampling: how tokens are drawn; temperature 0 is greedy decoding.
    """

    sampling: Sampling = field(default_factory=Sampling)

    once = True

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        return [meter.answer(i, e.text, (e,)) for i, (e,) in enumerate(meter.sample([1] * len(tasks)))]
