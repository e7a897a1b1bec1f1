"""A rule that misses right answers, models behind it, and an empty symbol that one of them takes for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.papers.judges.s030_verifier_pitfalls import hacked_at
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict

RIGHT, WRONG, HACK = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is the right answer, a wrong one, or the symbol that all problems share.

    The logits of right answers are equally spaced from ``least`` to ``most``, of wrong ones 0, of the symbol ``hack``,
    which is one number for all problems. The rule accepts a share of right answers; a model, which an arm names, is
    asked by the method as it does, and accepts some of each kind.

    Args:
        problems: all asked in every step.
        least, most, hack: logits at the start.
        rule: recall of the rule.
        model: share of right and wrong answers that models accept.
        fooled: share of symbols that the ``hackable`` and the ``robust`` model accept.
        steps, group, lr, optimizer: of training.
    """

    problems: int = 10
    least: float = -3.0
    most: float = 1.0
    hack: float = -3.0
    rule: float = 0.86
    model: tuple[float, float] = (0.86, 0.01)
    fooled: tuple[float, float] = (0.9, 0.002)
    steps: int = 120
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over problems: ``right``; ``hack``, the chance of the
        symbol; ``start``; ``peak``, the largest ``right`` in training; ``reward``, mean of the last tenth of the steps;
        ``gap``, that less ``right``; ``flagged``, whether the two parted in training; ``rollouts``."""
        rng = np.random.default_rng([seed, 30])
        policy = Shared(torch.linspace(self.least, self.most, self.problems, dtype=torch.float64), self.hack)
        tasks = [Task(str(i), str(i), reference="the answer", kind="tabular") for i in range(self.problems)]
        method = {**arm}
        reward = method.get("reward")
        if isinstance(reward, Mapping):
            fooled = self.fooled[("hackable", "robust").index(reward["model"])]
            accepts = (*self.model, fooled)

            def model(task: Task, answer: str) -> Verdict:
                return _drawn(rng, accepts[int(answer)])

            method["reward"] = {**reward, "model": model, "unmarked": "whole"}

        def rule(task: Task, response: str) -> Verdict:
            return _drawn(rng, self.rule * (int(response) == RIGHT))

        paid, true = list[float](), list[float]()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            paid.append(float(batch.rewards.mean()))
            true.append(float(policy.chances()[:, RIGHT].mean()))

        start, engine = float(policy.chances()[:, RIGHT].mean()), Counting(policy)
        training = Training(self.steps, self.problems, self.group, self.lr, self.optimizer)
        train(policy, tasks, rule, method, training, seed, watch, engine)
        right, hack = (float(policy.chances()[:, k].mean()) for k in (RIGHT, HACK))
        last = float(np.mean(paid[-max(self.steps // 10, 1) :]))
        return {
            "right": right,
            "hack": hack,
            "start": start,
            "peak": max(true),
            "reward": last,
            "gap": last - right,
            "flagged": float(hacked_at(paid, true) is not None),
            "rollouts": engine.sampled,
        }


def _drawn(rng: np.random.Generator, chance: float) -> Verdict:
    return Verdict.right() if rng.random() < chance else Verdict.wrong()


class Shared(TabularPolicy):
    """The policy of :class:`Setting`.

    Args:
        right: ``(K,)`` logits of right answers at the start.
        hack: that of the symbol.
    """

    def __init__(self, right: Tensor, hack: float):
        self.tree = Tree.of([[1.0, 0.0, 0.0] for _ in right])
        self.right = torch.nn.Parameter(right.clone())
        self.hack = torch.nn.Parameter(torch.tensor(hack, dtype=right.dtype))
        self.module = torch.nn.ParameterDict({"right": self.right, "hack": self.hack})
        self.nodes = torch.tensor([self.tree.node([k]) for k in range(len(right))])

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = self.right.new_zeros(self.tree.children.shape)
        rows = torch.stack([self.right, torch.zeros_like(self.right), self.hack.expand(len(self.right))], 1)
        return table.index_put((self.nodes[:, None], torch.arange(3)), rows)

    def chances(self) -> np.ndarray:
        """Return ``(K, 3)`` probabilities of the three responses to each problem."""
        with torch.no_grad():
            return np.asarray(self.log_policy().exp()[self.nodes, :3].numpy())

    def twin(self) -> Shared:
        return deepcopy(self)
