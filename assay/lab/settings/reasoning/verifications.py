"""Verifications of solutions by a verifier that errs at every step, and what is chosen among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.lab.settings.reasoning.miracle import FLAWED, SOUND, Judge
from assay.papers.process.s046_spark_stepwise import lessons
from assay.rewards.process.critiques import Critics, read
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Solutions of known steps are verified many times; each verdict on a step errs by itself.

    An arm says how a verification is chosen, ``by`` what (``none`` for the first), and whether it is reviewed; see
    :func:`assay.papers.process.s046_spark_stepwise.lessons`. A review is one more verification here, which is taken
    over as it is.

    Args:
        solutions: that are verified.
        length: steps of each.
        flawed: chance that a step is flawed.
        missed, alarms: how often a flawed step is called right, a sound one wrong.
        n: verifications of each.
    """

    solutions: int = 200
    length: int = 4
    flawed: float = 0.3
    missed: float = 0.3
    alarms: float = 0.3
    n: int = 16

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return how often what was chosen is right: on steps, ``accuracy``; on all of a solution, ``whole``; on
        whether any is flawed, ``outcome``."""
        rng = np.random.default_rng([seed, 7])
        made = rng.random((self.solutions, self.length)) < self.flawed
        critics = Critics(Judge(self.missed, self.alarms, seed), self.n)
        pairs = [
            (Task(str(i), f"problem {i}"), [str(FLAWED if bad else SOUND) for bad in row]) for i, row in enumerate(made)
        ]
        by = None if arm["by"] == "none" else arm["by"]
        taught = lessons(pairs, critics, by, bool(arm.get("review", False)))
        marks = np.array([read(str(t.solution), self.length).marks for t in taught])  # type: ignore[union-attr]
        right = marks == ~made
        return {
            "accuracy": float(right.mean()),
            "whole": float(right.all(1).mean()),
            "outcome": float((marks.all(1) == ~made.any(1)).mean()),
        }
