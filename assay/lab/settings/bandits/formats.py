"""Answers in or out of the form that was asked for, by a policy that seldom uses it and is seldom right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A response chooses its form first, then one of ``answers``, of which the last is right.

    Verdicts are on the answer alone; their part ``marked`` says whether it was in the form. Answers in and out of it
    are as good at the start, and learned apart.

    Args:
        tasks: bandits side by side.
        answers: to each.
        formed: chance of the form at the start.
        right: chance of the right answer at the start, in either form.
        spread: standard deviation of what is added to the logits.
        steps, prompts, group, lr: of training.
    """

    tasks: int = 6
    answers: int = 4
    formed: float = 0.05
    right: float = 0.03
    spread: float = 0.3
    steps: int = 40
    prompts: int = 6
    group: int = 8
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the exact probability of a right answer, mean over tasks: ``final``, its mean over training ``area``,
        ``start``; ``formed``, that of the form; ``rollouts``."""
        tree = Tree.of([[[0.0] * (self.answers - 1) + [1.0]] * 2] * self.tasks)
        table = torch.from_numpy(jitter(self.spread, seed, *tree.children.shape))
        for i in range(self.tasks):
            where = [tree.node([i, *form]) for form in ((), (0,), (1,))]
            first, *last = [node for node in where if node is not None]
            table[first, 1] += np.log(self.formed / (1 - self.formed))
            for node in last:
                table[node, self.answers - 1] += np.log((self.answers - 1) * self.right / (1 - self.right))
        policy, curve = TabularPolicy(tree, table), []

        def given() -> np.ndarray:
            p = policy.leaf_logprobs().exp().detach().numpy().reshape(self.tasks, 2, self.answers)
            return np.asarray(p / p.sum((1, 2), keepdims=True))

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float(given()[:, :, -1].sum(1).mean()))

        start, engine = float(given()[:, :, -1].sum(1).mean()), Counting(policy)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr)
        train(policy, tasks, self._judge, arm, training, seed, watch, engine)
        return {
            "final": curve[-1],
            "area": float(np.mean(curve)),
            "start": start,
            "formed": float(given()[:, 1].sum(1).mean()),
            "rollouts": engine.sampled,
        }

    def _judge(self, task: Task, response: str) -> Verdict:
        form, answer = map(int, response.split("/"))
        right = answer == self.answers - 1
        return Verdict(float(right), right, {"marked": float(form)})
