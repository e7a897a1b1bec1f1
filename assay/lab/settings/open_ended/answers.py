"""A token tree whose questions can also be read with the answer in them, where the policy knows better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` trees of branching^depth leaves, ``right`` of them right. The prompt of question i is ``i/0``.

    ``i/1`` is the same question with its answer, which is the task's reference: there the policy is the Bayesian
    posterior of what it is at the start without the answer, q(leaf) ~ p(leaf) for right leaves and ``doubt`` p(leaf)
    for wrong ones. The two views share no parameters, so the posterior stays as it is.

    Args:
        tasks: questions, each asked equally often.
        branching, depth, right: of the trees.
        spread: standard deviation of the logits at the start.
        doubt: in [0, 1]: 0, the answer rules wrong leaves out; 1, it says nothing.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: ``doubt`` out of range.
    """

    tasks: int = 8
    branching: int = 4
    depth: int = 3
    right: int = 2
    spread: float = 1.0
    doubt: float = 0.02
    steps: int = 200
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not 0 <= self.doubt <= 1:
            raise UsageError(f"setting 'answers': doubt {self.doubt:g} is outside [0, 1]")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures without the answer, means over tasks.

        ``final``: probability of a right leaf; ``area``: its mean over training; ``start``; ``shown``: the probability
        with the answer; ``posterior``: minus the divergence KL(with, without the answer) of the distributions over
        leaves, in nats; ``rollouts``.
        """
        rng = np.random.default_rng([seed, 19])
        leaves = self.branching**self.depth
        right = np.zeros((self.tasks, leaves))
        for row in right:
            row[rng.choice(leaves, self.right, replace=False)] = 1
        tree = Tree.of([[self.nested(row), self.nested(row)] for row in right.tolist()])
        logits = torch.from_numpy(self.spread * rng.standard_normal(tuple(tree.children.shape)))
        policy = TabularPolicy(tree, logits)
        with torch.no_grad():
            self.condition(policy, right)
        share = self.leaves(policy)

        def chance(view: int) -> float:
            return float((self.leaves(policy)[:, view] * right).sum(-1).mean())

        curve, engine = list[float](), Counting(policy)
        start = float((share[:, 0] * right).sum(-1).mean())
        tasks = [Task(str(i), f"{i}/0", reference=f"{i}/1", kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(tree), arm, training, seed, lambda *_: curve.append(chance(0)), engine)
        with torch.no_grad():
            logp = policy.leaf_logprobs().numpy().reshape(self.tasks, 2, -1)
        logp = logp - np.logaddexp.reduce(logp, axis=-1, keepdims=True)
        told = np.exp(logp[:, 1])
        divergence = (told * np.where(told > 0, logp[:, 1] - logp[:, 0], 0.0)).sum(-1)
        return {
            "start": start,
            "posterior": -float(divergence.mean()),
            "final": chance(0),
            "area": float(np.mean(curve)),
            "shown": chance(1),
            "rollouts": engine.sampled,
        }

    def nested(self, row: list[float]) -> Any:
        """Return the leaves of a tree as nested lists."""
        level: list[Any] = list(row)
        for _ in range(self.depth):
            level = [level[i : i + self.branching] for i in range(0, len(level), self.branching)]
        return level[0]

    def leaves(self, policy: TabularPolicy) -> np.ndarray:
        """Probability of each leaf given task and view, ``(tasks, 2, leaves)``."""
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy().reshape(self.tasks, 2, -1)
        return np.asarray(p / p.sum(-1, keepdims=True))

    def condition(self, policy: TabularPolicy, right: np.ndarray) -> None:
        """Make the answered view of every question the posterior of the plain one."""
        posterior = self.leaves(policy)[:, 0] * np.where(right > 0, 1.0, self.doubt)
        for i in range(self.tasks):
            level = posterior[i].reshape((self.branching,) * self.depth)
            for depth in range(self.depth):
                mass = level.sum(tuple(range(depth + 1, self.depth)))
                for path in np.ndindex(mass.shape[:-1]):
                    node = policy.tree.node((i, 1, *path))
                    policy.logits[node, : self.branching] = torch.from_numpy(np.log(np.maximum(mass[path], 1e-300)))
