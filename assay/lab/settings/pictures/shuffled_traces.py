"""Solutions, and the same steps in another order: which of the two is scored higher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.evaluate.traces.alignment import text_score


@dataclass(frozen=True, slots=True)
class Setting:
    """Each given step is a reference step, found by a likeness that is normal about ``same`` for it and 0 for others.

    Some reference steps are left out. An arm is whether steps are paired in order.

    Args:
        traces: pairs of a solution and its steps in another order.
        steps: of a reference.
        kept: share of them that a solution has.
        same, noise: mean likeness of a step with itself, and standard deviation of every likeness; within [0, 1].
    """

    traces: int = 400
    steps: int = 8
    kept: float = 0.75
    same: float = 0.6
    noise: float = 0.2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``told``, the share of pairs whose solution scores higher, equal ones half, and the ``margin``."""
        rng = np.random.default_rng([seed, 142])
        told, margins = [], []
        for _ in range(self.traces):
            kept = np.sort(rng.permutation(self.steps)[: round(self.kept * self.steps)])
            likeness = (np.arange(self.steps) == kept[:, None]) * self.same
            likeness = np.clip(likeness + self.noise * rng.standard_normal(likeness.shape), 0, 1)
            right, wrong = (text_score(rows, **arm) for rows in (likeness, likeness[rng.permutation(len(kept))]))
            told.append((np.sign(round(right - wrong, 12)) + 1) / 2)
            margins.append(right - wrong)
        return {"told": float(np.mean(told)), "margin": float(np.mean(margins)), "rollouts": float(2 * self.traces)}
