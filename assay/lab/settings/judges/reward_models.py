"""Reward models that differ in how well they see and how easily they are fooled, a benchmark of them, and what choosing
by them comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.inference.supervision.one_of_many import one_of_many
from assay.papers.judges.s128_rewardmath import best_of_n_curve, validity


@dataclass(frozen=True, slots=True)
class Setting:
    """Model m scores a solution by normal noise, plus d_m if it is right, plus ``bonus`` with chance f_m if it is not.

    d_m is uniform in ``sight``; the logarithm of f_m is uniform in that of ``fooled``. An arm says how many ``wrong``
    solutions of each problem the benchmark has, and for how many times as many ``problems``.

    Args:
        models: of a benchmark.
        sight, fooled, bonus: see above.
        problems: of the benchmark.
        tasks, samples: that the best is chosen of.
        solved: share of samples that are right.
    """

    models: int = 20
    sight: tuple[float, float] = (0.5, 2.5)
    fooled: tuple[float, float] = (0.003, 0.1)
    bonus: float = 3.0
    problems: int = 200
    tasks: int = 100
    samples: int = 64
    solved: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``validity``, the rank correlation of the benchmark with the best of n; means over models of either:
        ``benchmark`` and ``gold``."""
        rng = np.random.default_rng([seed, 43])
        sight = rng.uniform(*self.sight, self.models)
        low, high = map(math.log, self.fooled)
        fooled = np.exp(rng.uniform(low, high, self.models))

        def scores(m: int, right: np.ndarray) -> np.ndarray:
            trick = self.bonus * (rng.random(right.shape) < fooled[m])
            return rng.standard_normal(right.shape) + np.where(right, sight[m], trick)

        right = rng.random((self.tasks, self.samples)) < self.solved
        gold = [best_of_n_curve(scores(m, right), right, [self.samples])[0].gold for m in range(self.models)]
        shown = np.zeros((self.problems * int(arm.get("problems", 1)), 1 + int(arm["wrong"])), dtype=bool)
        shown[:, 0] = True
        found = []
        for m in range(self.models):
            table = scores(m, shown)
            found.append(one_of_many([(row[:1], row[1:]) for row in table.tolist()]).strict.value)
        return {"validity": validity(found, gold), "benchmark": float(np.mean(found)), "gold": float(np.mean(gold))}
