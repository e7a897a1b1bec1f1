"""The most likely token at every step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.registry import part
from assay.types import Task


@part("inference", "greedy")
@dataclass(frozen=True, slots=True)
class Greedy:
    """One response at temperature 0, whatever the budget.

    Args:
        sampling: its ``max_tokens`` and ``stop`` are used.
    """

    sampling: Sampling = field(default_factory=Sampling)

    once = True

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        coldest = replace(self.sampling, temperature=0.0, top_p=1.0, top_k=0)
        meter = Meter(tasks, engine, budget, rng, coldest)
        found = meter.sample([1] * len(tasks))
        return [meter.answer(i, e.text, (e,)) for i, (e,) in enumerate(found)]
