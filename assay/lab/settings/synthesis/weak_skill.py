"""Skills that a first training taught, but for one, and new problems shared out among them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.papers.data.s079_sws import budgets, weak
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """A problem of skill s is solved with probability sigmoid(w_s - d), d being its difficulty, normal.

    Each skill has a weight of its own; that of the first is far lower after the first training, whose accuracies are
    drawn at ``visits`` visits of ``group`` responses. New problems are written for skills as an arm's table ``setting``
    says under ``shares``: ``failure``, in proportion to their share of weak problems, or ``equal``.

    Args:
        skills, problems: how many, and problems of each in the first training.
        weak, strong: weights of the first skill and of the others before the second training.
        spread: standard deviation of the weights, and ``difficulty`` of d.
        visits: of each problem in the first training.
        new: problems to be written.
        steps, prompts, group, lr, optimizer: of the second training, on new problems alone.
    """

    skills: int = 5
    problems: int = 20
    weak: float = -1.5
    strong: float = 1.0
    spread: float = 0.2
    difficulty: float = 0.5
    visits: int = 4
    new: int = 40
    steps: int = 30
    prompts: int = 8
    group: int = 8
    lr: float = 0.3
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the chance of a right answer to a problem of no special difficulty after training: of the ``weak``
        skill, of the ``others``, and of ``all``; the ``share`` of new problems that are the weak skill's; and
        ``rollouts``."""
        method = {**arm}
        shares = dict(method.pop("setting", {})).get("shares")
        if shares not in ("failure", "equal"):
            raise UsageError("an arm of 'weak_skill' says under setting how problems are shared out: failure or equal")
        rng = np.random.default_rng([seed, 31])
        base = np.array([self.weak, *[self.strong] * (self.skills - 1)])
        weights = base + jitter(self.spread, seed, self.skills)
        hard = self.difficulty * rng.standard_normal((self.skills, self.problems))
        chances = 1 / (1 + np.exp(hard - weights[:, None]))
        history = rng.binomial(self.group, chances[..., None], (*chances.shape, self.visits)) / self.group
        failed = {str(s): float(np.mean([weak(h) for h in history[s].tolist()])) for s in range(self.skills)}
        counts = budgets(self.new, failed if shares == "failure" else dict.fromkeys(failed, 1.0))
        skill = [int(s) for s, count in counts.items() for _ in range(count)]
        order = rng.permutation(len(skill)).tolist()
        asked = [skill[i] for i in order]
        policy = Skilled(
            torch.tensor(asked), torch.from_numpy(self.difficulty * rng.standard_normal(len(asked))), weights
        )
        engine = Counting(policy)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(len(asked))]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(policy.tree), method, training, seed, engine=engine)
        after = policy.theta.detach().sigmoid()
        return {
            "weak": float(after[0]),
            "others": float(after[1:].mean()),
            "all": float(after.mean()),
            "share": asked.count(0) / len(asked),
            "rollouts": engine.sampled,
        }


class Skilled(TabularPolicy):
    """A tabular policy of one right and one wrong answer a problem, with logits w_s - d and 0.

    Args:
        skill: ``(problems,)`` s of each.
        hard: ``(problems,)`` d of each.
        weights: ``(skills,)`` w at first.
    """

    def __init__(self, skill: Tensor, hard: Tensor, weights: np.ndarray):
        self.tree = Tree.of([[1.0, 0.0] for _ in skill])
        self.skill, self.hard = skill, hard
        self.theta = torch.nn.Parameter(torch.from_numpy(weights.copy()))
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        self.starts_at = torch.tensor([self.tree.node([i]) for i in range(len(skill))])

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = torch.zeros(self.tree.children.shape, dtype=self.theta.dtype)
        return table.index_put((self.starts_at, torch.zeros_like(self.starts_at)), self.theta[self.skill] - self.hard)

    def twin(self) -> Skilled:
        return deepcopy(self)
