"""Pictures turned by one of four angles, some easy to tell and some hard, of which a table knows nothing but names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting, beside
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.choice.verifier import Choice

ANGLES = {str(k): f"{90 * k} degrees" for k in range(4)}


@dataclass(frozen=True, slots=True)
class Setting:
    """A softmax of four angles for each picture, in which the right one begins with a logit between -x and x.

    Args:
        pictures: each is asked in every step.
        x: see above; the logits of the others begin at 0.
        steps, group, lr: of training.
    """

    pictures: int = 16
    x: float = 3.0
    steps: int = 30
    group: int = 8
    lr: float = 3.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact means over pictures: ``start`` and ``final``, the probability of the right angle before and
        after training, ``area``, its mean over training; ``middle``, of the sizes of all advantages the share in groups
        with more than one right and more than one wrong response; and ``rollouts``.
        """
        rng = np.random.default_rng([seed, 101])
        right = rng.integers(4, size=self.pictures)
        tree = beside([Tree.bandit(4) for _ in range(self.pictures)])
        nodes = np.array([tree.node([i]) for i in range(self.pictures)])
        logits = np.zeros(tree.children.shape)
        logits[nodes, right] = rng.uniform(-self.x, self.x, self.pictures)
        policy = TabularPolicy(tree, torch.from_numpy(logits))
        tasks = [Task(str(i), str(i), str(angle), "choice", meta={"options": ANGLES}) for i, angle in enumerate(right)]
        curve, sizes = list[float](), np.zeros(2)

        def chance() -> float:
            with torch.no_grad():
                return float(policy.log_policy().exp().numpy()[nodes, right].mean())

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(chance())
            rows = batch.advantages.abs().sum(-1).numpy().reshape(self.pictures, self.group).sum(1)
            solved = batch.rewards.numpy().reshape(self.pictures, self.group).sum(1)
            middle = (solved > 1) & (solved < self.group - 1)
            sizes[:] += rows[middle].sum(), rows.sum()

        start, engine = chance(), Counting(policy)
        training = Training(self.steps, self.pictures, self.group, self.lr)
        train(policy, tasks, Choice(), dict(arm), training, seed, watch, engine)
        return {
            "start": start,
            "final": curve[-1],
            "area": float(np.mean(curve)),
            "middle": float(sizes[0] / sizes[1]) if sizes[1] else 0.0,
            "rollouts": float(engine.sampled),
        }
