"""Tasks that forgive wrong choices, more of them or fewer, and habits that a policy has in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """A trajectory is ``length`` choices among ``options``, each good or not; a task passes if enough of them are good.

    Task k, of ``length``, needs k + 1 good ones: the first forgives all others, the last none. The policy has one
    table of choices for all tasks, which are asked alike in each step, ``prompts`` copies of all.

    Args:
        length, options: see above.
        chance, spread: of a good choice at the start; standard deviation of the logits around it.
        steps, prompts, group, lr, optimizer: of training.
    """

    length: int = 4
    options: int = 5
    chance: float = 0.35
    spread: float = 0.1
    steps: int = 10
    prompts: int = 2
    group: int = 4
    lr: float = 10.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances of success: ``final`` at the end and ``start``, means over tasks, ``area``, the mean of
        that over steps; ``easiest`` and ``hardest`` at the end, of these tasks; ``good``, of a good choice; and
        ``rollouts``, ``learned``: trajectories sampled, and learned from."""
        policy = self.policy(seed)
        start, curve, learned = policy.solved(), list[float](), 0
        tasks = [Task(f"{k}/{i}", str(k), kind="tabular") for i in range(self.prompts) for k in range(self.length)]
        engine = Counting(policy)
        training = Training(self.steps, len(tasks), self.group, self.lr, self.optimizer, max_tokens=self.length)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            nonlocal learned
            curve.append(float(policy.solved().mean()))
            learned += int((batch.weights > 0).sum())

        train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, watch, engine)
        end = policy.solved()
        return {
            "start": float(start.mean()),
            "final": float(end.mean()),
            "area": float(np.mean(curve)),
            "easiest": float(end[0]),
            "hardest": float(end[-1]),
            "good": float(policy.good().mean()),
            "rollouts": engine.sampled,
            "learned": learned,
        }

    def policy(self, seed: int) -> Habits:
        """Return the policy at the start; the first option is the good one."""
        table = jitter(self.spread, seed, self.length, self.options)
        table[:, 0] += math.log(self.chance / (1 - self.chance) * (self.options - 1))
        return Habits(torch.from_numpy(table))


class Habits(TabularPolicy):
    """A policy over the tree task / choices, whose choices have the same logits in all tasks.

    Args:
        table: ``(length, options)`` logits, the only parameter.
    """

    def __init__(self, table: Tensor):
        length, options = table.shape

        def choices(needed: int, left: int) -> Any:
            if left == 0:
                return float(needed <= 0)
            return [choices(needed - (k == 0), left - 1) for k in range(options)]

        self.tree = Tree.of([choices(task + 1, length) for task in range(length)])
        self.table = torch.nn.Parameter(table.clone())
        self.module = torch.nn.ParameterDict({"table": self.table})
        at = [
            (self.tree.node((task, *made)), t)
            for task, t in product(range(length), range(length))
            for made in product(range(options), repeat=t)
        ]
        self._at, self._turn = torch.tensor(at).mT

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        rows = torch.zeros(self.tree.children.shape, dtype=self.table.dtype)
        return rows.index_put((self._at[:, None], torch.arange(self.table.shape[1])[None]), self.table[self._turn])

    def good(self) -> np.ndarray:
        """Chance of the good option in each choice."""
        with torch.no_grad():
            return self.table.softmax(-1)[:, 0].numpy()

    def solved(self) -> np.ndarray:
        """Chance of success in each task: that so many choices are good."""
        counts = np.ones(1)
        for p in self.good():
            counts = np.convolve(counts, [1 - p, p])
        return counts[::-1].cumsum()[::-1][1:]

    def twin(self) -> Habits:
        return deepcopy(self)
