"""A bandit whose reward, for some of its actions, is more than they are worth, and its links over exact training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.diagnose.links import links


@dataclass(frozen=True, slots=True)
class Setting:
    """A softmax policy climbs its expected reward by exact natural gradients; its worth is measured every window.

    Values are uniform in [0, 1]. The reward of an action is its value, and for ``hacks`` of the worst more by 1 less
    that and an arm's ``hack``; their chance at the start is small, so that they are found late. The alarm is for falls
    beyond what chance does to evaluations, or beyond an arm's ``least``.

    Args:
        actions, hacks: see above.
        lr: of the gradient.
        windows, steps: of an evaluation, and gradient steps in each.
        samples: of an evaluation.
        rare: log-odds of a hack against another action at the start.
    """

    actions: int = 20
    hacks: int = 3
    lr: float = 0.1
    windows: int = 20
    steps: int = 10
    samples: int = 200
    rare: float = -4.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the links. ``alarm``: 1 if it came; ``lost``: what the evaluation has lost since its peak;
        ``reward_evaluation``: the rank correlation, 0 where it is not defined."""
        rng = np.random.default_rng([seed, 41])
        value = np.sort(rng.random(self.actions))
        hack = float(arm["hack"])
        reward = value.copy()
        if hack:
            reward[: self.hacks] = 1 + hack
        logits = np.where(np.arange(self.actions) < self.hacks, self.rare, 0.0)
        judged, earned, wanted = [], [], []
        for _ in range(self.windows):
            for _ in range(self.steps):
                p = np.exp(logits - logits.max())
                p /= p.sum()
                logits = logits + self.lr * (reward - p @ reward)
            p = np.exp(logits - logits.max())
            p /= p.sum()
            drawn = rng.choice(self.actions, self.samples, p=p)
            judged.append(_agreement(reward[drawn], value[drawn]))
            earned.append(float(p @ reward))
            wanted.append(float(value[drawn].mean()))
        spread = float(np.sqrt(2 * 0.25 / self.samples))  # of a difference, at most
        least = float(arm.get("least", 1.96 * spread))
        found = links(judged, earned, wanted, least=least)
        return {
            "alarm": float(found.alarm is not None),
            "lost": wanted[found.peak] - wanted[-1],
            "reward_evaluation": float(np.nan_to_num(found.reward_evaluation)),
        }


def _agreement(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation over samples, NaN where one of the two never changes."""
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else float("nan")
