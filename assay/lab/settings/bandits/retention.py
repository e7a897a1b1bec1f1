"""Target problems whose training makes general ones worse, which the policy could solve before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.bandits.problems import Coupled
from assay.lab.settings.tree import Counting
from assay.tasks.listed import Listed
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Problem i is answered rightly with probability sigmoid(own_i w_i + shared_i w), w_i and w being trained.

    For target problems shared_i is positive, for general ones negative, each random, so that what the target gains by w
    the general problems lose. The run asks target problems only; an arm with curriculum ``replay`` is given the general
    ones as its general source.

    Args:
        target, general: problems of each kind.
        own: own_i of all.
        shared: mean of the absolute shared_i, which are uniform between half and three halves of it.
        hard, solved: start of w_i for target and for general problems.
        prompts: problems in a step.
        steps, group, lr, optimizer: of training.
    """

    target: int = 8
    general: int = 8
    own: float = 0.5
    shared: float = 1.0
    hard: float = -3.0
    solved: float = 4.0
    prompts: int = 8
    steps: int = 100
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return mean probabilities of a right answer: ``target``, ``general``, ``both`` (the mean of the two).

        ``target/start`` and ``general/start``; ``area``: the mean of ``both`` over training; ``rollouts``.
        """
        policy = self.policy(seed)
        kinds = ["target"] * self.target + ["general"] * self.general
        tasks = [Task(str(i), str(i), kind="tabular", meta={"source": k}) for i, k in enumerate(kinds)]
        method = {**arm}
        curriculum = method.get("curriculum")
        if isinstance(curriculum, Mapping) and curriculum.get("name") == "replay":
            method["curriculum"] = {**curriculum, "general": Listed(tasks[self.target :])}
        engine = Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        before, curve = self.measure(policy), list[float]()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(self.measure(policy)["both"])

        train(policy, tasks[: self.target], TabularVerifier(policy.tree), method, training, seed, watch, engine)
        return {
            **self.measure(policy),
            "target/start": before["target"],
            "general/start": before["general"],
            "area": float(np.mean(curve)),
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> Coupled:
        """Return the policy at the start."""
        rng = np.random.default_rng([seed, 7])
        count = self.target + self.general
        sign = np.array([1.0] * self.target + [-1.0] * self.general)
        shared = torch.from_numpy(sign * self.shared * rng.uniform(0.5, 1.5, count))
        start = torch.tensor([self.hard] * self.target + [self.solved] * self.general, dtype=torch.float64)
        return Coupled(torch.full((count,), self.own, dtype=torch.float64), shared, start, 0.0)

    def measure(self, policy: Coupled) -> dict[str, float]:
        p = policy.chances()
        target, general = float(p[: self.target].mean()), float(p[self.target :].mean())
        return {"target": target, "general": general, "both": (target + general) / 2}
