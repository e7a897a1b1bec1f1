"""Easy prompts that a short answer solves and hard ones that need a long one, under one policy of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """The policy decides after each token whether to stop, the same for every prompt: it cannot tell them apart.

    A response of L tokens is right with probability ``easy[L - 1]`` or ``hard[L - 1]``, drawn anew each time; half of
    the prompts of a step are easy. All lengths are about equally likely at first.

    Args:
        easy, hard: chances of being right by length.
        spread: standard deviation of what is added to the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    easy: tuple[float, ...] = (0.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    hard: tuple[float, ...] = (0.0, 0.02, 0.05, 0.15, 0.5, 0.6)
    spread: float = 0.3
    steps: int = 600
    prompts: int = 10
    group: int = 8
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if len(self.easy) != len(self.hard) or len(self.easy) < 2:
            raise UsageError("setting 'lengths': easy and hard need one chance each for two or more lengths")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy: ``easy`` and ``hard``, the chance to be right on either;
        ``accuracy``, their mean; ``area``, the mean of that over training; ``length``, the mean in tokens; ``shorter``,
        its negative; ``per_token``, accuracy by length; ``rollouts``."""
        policy = chain(len(self.easy))
        with torch.no_grad():
            policy.logits.add_(torch.from_numpy(jitter(self.spread, seed, *policy.logits.shape)))
        chances = {"easy": self.easy, "hard": self.hard}
        tasks = [Task(name, name, kind=name) for name in chances]
        rng = np.random.default_rng([seed, 17])

        def judge(task: Task, response: str) -> Verdict:
            length = response.count("/") + 1
            return Verdict.right() if rng.random() < chances[task.kind][length - 1] else Verdict.wrong()

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        curve: list[float] = []

        def measure() -> tuple[np.ndarray, dict[str, float]]:
            p = policy.leaf_logprobs().detach().exp().numpy()
            return p, {name: float(p @ np.array(chance)) for name, chance in chances.items()}

        watch = lambda *_: curve.append(float(np.mean(list(measure()[1].values()))))  # noqa: E731
        train(policy, tasks, judge, arm, training, seed, watch)
        p, found = measure()
        length = float(p @ policy.tree.lengths.numpy())
        accuracy = float(np.mean(list(found.values())))
        return {
            **found,
            "accuracy": accuracy,
            "area": float(np.mean(curve)),
            "length": length,
            "shorter": -length,
            "per_token": accuracy / length,
            "rollouts": self.steps * self.prompts * self.group,
        }


def chain(longest: int) -> TabularPolicy:
    """Return a policy over responses of 1 to ``longest`` tokens, all equally likely: token 0 ends, token 1 goes on."""
    node: list[Any] = [0]
    for _ in range(longest - 1):
        node = [0, node]
    tree = Tree.of(node)
    logits = torch.zeros(tree.children.shape, dtype=torch.float64)
    logits[:-1, 1] = torch.log(torch.arange(longest - 1, 0, -1, dtype=torch.float64))
    return TabularPolicy(tree, logits)
