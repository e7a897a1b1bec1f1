"""Verdicts on pairs, some of which cannot be read."""

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
    """A judge says of a pair which answer is better, the right one or the other, in the form that was asked for or not.

    Of a verdict out of form nothing can be read: part ``readable`` is 0.

    Args:
        pairs: that are judged, all in every step, each learned apart.
        malformed: chance of a verdict out of form at the start.
        spread: standard deviation of what is added to the logits.
        steps, group, lr: of training.
    """

    pairs: int = 12
    malformed: float = 0.2
    spread: float = 0.5
    steps: int = 40
    group: int = 8
    lr: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the exact chance of a right verdict, mean over pairs: ``final``, its mean over training ``area``;
        ``formed``, that of the form; ``rollouts``."""
        tree = Tree.of([[0.0, [0.0, 1.0]]] * self.pairs)
        table = torch.from_numpy(jitter(self.spread, seed, *tree.children.shape))
        for i in range(self.pairs):
            node = tree.node([i])
            assert node is not None
            table[node, 1] = np.log(1 / self.malformed - 1) + table[node, 0]
        policy, curve = TabularPolicy(tree, table), []

        def chances() -> np.ndarray:
            p = policy.leaf_logprobs().exp().detach().numpy().reshape(self.pairs, 3)
            return np.asarray(p / p.sum(1, keepdims=True))

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float(chances()[:, 2].mean()))

        engine = Counting(policy)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.pairs)]
        train(policy, tasks, judged, arm, Training(self.steps, self.pairs, self.group, self.lr), seed, watch, engine)
        return {
            "final": curve[-1],
            "area": float(np.mean(curve)),
            "formed": float(1 - chances()[:, 0].mean()),
            "rollouts": engine.sampled,
        }


def judged(task: Task, response: str) -> Verdict:
    """Return the verdict on a verdict: ``0`` is out of form, ``1/1`` right."""
    right = response == "1/1"
    return Verdict(float(right), right, {"readable": float(response != "0")})
