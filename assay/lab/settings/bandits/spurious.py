"""One step on random rewards from a skewed choice: what it does to the entropy, without any training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """The likeliest of ``actions`` actions has probability ``top``; the others share the rest at random.

    Their shares are Dirichlet, so that none is nearly impossible. A step of natural gradient follows from a group whose
    rewards are drawn at random. An arm is ``{"clip": half-width}`` or ``{"clip": None}``.

    Args:
        actions: 2 or more.
        top: in (0, 1).
        even: parameter of the Dirichlet distribution; the larger, the more alike the shares.
        group: actions in a group.
        step: size of the step.
        draws: groups, over which the change is averaged.

    Raises:
        UsageError: a number out of range.
    """

    actions: int = 6
    top: float = 0.9
    even: float = 4.0
    group: int = 16
    step: float = 0.1
    draws: int = 20_000

    def __post_init__(self) -> None:
        if self.actions < 2 or not 0 < self.top < 1 or self.even <= 0:
            raise UsageError("setting 'spurious' needs actions >= 2, top in (0, 1) and even > 0")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``change``, the mean change of the entropy in nats; ``start``, the entropy before; ``rollouts``."""
        from assay.papers.objectives.s094_exploration_vs_exploitation import entropy_change

        others = np.random.default_rng([seed, 31]).dirichlet([self.even] * (self.actions - 1))
        p = np.concatenate([[self.top], (1 - self.top) * others])
        change, _error = entropy_change(p.tolist(), self.group, self.step, arm["clip"], self.draws, seed=seed)
        return {"change": change, "start": float(-(p * np.log(p)).sum()), "rollouts": self.draws * self.group}
