"""Answers of several sentences, some of them wrong, and a judge who knows which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.none import NoVerifier


@dataclass(frozen=True, slots=True)
class Setting:
    """An answer has ``length`` sentences, each one of ``choices``, of which the last is right, whatever stands before.

    An arm is a method whose ``judge`` of sentences is ``here``: one that knows.

    Args:
        questions: asked in every step; each is learned apart.
        length, choices: see above.
        spread: standard deviation of the logits at the start.
        steps, group, lr: of training.
    """

    questions: int = 4
    length: int = 4
    choices: int = 3
    spread: float = 0.5
    steps: int = 40
    group: int = 8
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the exact share of right sentences, mean over questions: ``final``, its mean over training ``area``,
        ``start``; ``whole``, the chance of an answer without a wrong one; ``rollouts``."""
        if arm.get("judge") != "here":
            raise UsageError("an arm of setting 'planted_sentences' is a method whose judge is 'here'")
        method = {k: v for k, v in arm.items() if k != "judge"}
        method["options"] = {"judge": Knowing(self.choices - 1), **method.get("options", {})}
        tree = Tree.of([nested(self.length, self.choices)] * self.questions)
        policy = TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))
        right = np.indices((self.choices,) * self.length).reshape(self.length, -1) == self.choices - 1

        def chances() -> np.ndarray:
            p = policy.leaf_logprobs().exp().detach().numpy().reshape(self.questions, -1)
            return np.asarray(p / p.sum(1, keepdims=True))

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float((chances() @ right.mean(0)).mean()))

        curve, start, engine = list[float](), float((chances() @ right.mean(0)).mean()), Counting(policy)
        tasks = [Task(str(i), str(i), kind="none") for i in range(self.questions)]
        training = Training(self.steps, self.questions, self.group, self.lr)
        train(policy, tasks, NoVerifier(), method, training, seed, watch, engine)
        return {
            "final": curve[-1],
            "area": float(np.mean(curve)),
            "start": start,
            "whole": float(chances()[:, -1].mean()),
            "rollouts": engine.sampled,
        }


@dataclass(frozen=True, slots=True)
class Knowing:
    """A judge of sentences that are numbers, of which one is right."""

    right: int

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        return [[1.0 if int(text) == self.right else -1.0 for text in sentences] for _, sentences in responses]


def nested(depth: int, choices: int) -> Any:
    """Return a tree of answers."""
    return [0.0 if depth == 1 else nested(depth - 1, choices) for _ in range(choices)]
