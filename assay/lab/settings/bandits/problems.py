"""Problems that are right with some probability each, by weights of their own and one that all share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Problem i is answered rightly with probability sigmoid(own_i w_i + shared_i w), w_i and w being trained.

    Each kind of problems is (how many, own, shared, start of w_i). With ``shared`` 0 problems are independent; where it
    differs in sign, learning some of them makes others worse. An arm may give a table ``setting`` of knobs that differ
    for it alone, as long as the rollouts in all are the same.

    Args:
        kinds: easiest first.
        hard: how many of them, from the last, are called hard in what is measured.
        asked: places of the kinds that are asked; of all unless given.
        shared: start of w.
        spread: standard deviation of what is added to the starts of w_i.
        rollouts: training ends after the step in which so many responses have been sampled, if that is not after
            ``steps``; for arms that sample more in a step than others.
        steps, group, lr, optimizer: of training; every problem of a kind that is asked is so in every step.
    """

    kinds: tuple[tuple[int, float, float, float], ...] = ((8, 1.0, 0.0, 1.0), (8, 1.0, 0.0, -3.0))
    hard: int = 1
    asked: tuple[int, ...] = ()
    shared: float = 0.0
    spread: float = 0.3
    rollouts: int | None = None
    steps: int = 60
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return mean probabilities of a right answer: of ``all``, ``easy`` and ``hard`` problems, and at the start.

        ``hard/area``: that of the hard ones, averaged over the responses sampled; ``rollouts``: how many those were.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"group", "steps", "asked"}:
            raise UsageError("an arm may change group, steps and what is asked of its setting alone")
        here = replace(self, **knobs)
        policy = here.policy(seed)
        count = len(policy.own)
        kind = np.repeat(np.arange(len(self.kinds)), [row[0] for row in self.kinds])
        asked = [i for i in range(count) if not here.asked or kind[i] in here.asked]
        if not asked:
            raise UsageError(f"kinds that are asked, {list(here.asked)}, must be of 0 to {len(self.kinds) - 1}")
        tasks = [Task(str(i), str(i), kind="tabular") for i in asked]
        before = policy.chances()
        hard = np.arange(count) >= count - sum(row[0] for row in self.kinds[-self.hard :])
        engine = Counting(policy)
        training = Training(here.steps, len(asked), here.group, here.lr, here.optimizer)

        spent, solved = [0], [float(before[hard].mean())]

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            spent.append(engine.sampled)
            solved.append(float(policy.chances()[hard].mean()))
            if self.rollouts is not None and engine.sampled >= self.rollouts:
                raise _Spent

        with suppress(_Spent):
            train(policy, tasks, TabularVerifier(policy.tree), method, training, seed, watch, engine)
        after = policy.chances()
        return {
            "all": float(after.mean()),
            "easy": float(after[~hard].mean()),
            "hard": float(after[hard].mean()),
            "hard/area": float(np.diff(spent) @ np.convolve(solved, [0.5, 0.5], "valid") / spent[-1]),
            "easy/start": float(before[~hard].mean()),
            "hard/start": float(before[hard].mean()),
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> Coupled:
        """Return the policy at the start."""
        rows = [row[1:] for row in self.kinds for _ in range(row[0])]
        own, shared, start = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
        return Coupled(own, shared, start + torch.from_numpy(jitter(self.spread, seed, len(start))), self.shared)


class _Spent(Exception):
    """The rollouts are used up."""


class Coupled(TabularPolicy):
    """A tabular policy of one right and one wrong answer per problem, with logits own_i w_i + shared_i w and 0.

    Args:
        own, shared: ``(problems,)`` constants.
        weights: ``(problems,)`` start of w_i.
        common: start of w.
    """

    def __init__(self, own: Tensor, shared: Tensor, weights: Tensor, common: float):
        self.tree = Tree.of([[1.0, 0.0] for _ in own])
        self.own, self.shared = own, shared
        self.theta = torch.nn.Parameter(torch.cat([weights, torch.tensor([common], dtype=torch.float64)]))
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        nodes = [self.tree.node([i]) for i in range(len(own))]
        self.starts_at = torch.tensor(nodes)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        z = self.own * self.theta[:-1] + self.shared * self.theta[-1]
        table = torch.zeros(self.tree.children.shape, dtype=torch.float64)
        return table.index_put((self.starts_at, torch.zeros_like(self.starts_at)), z)

    def chances(self) -> np.ndarray:
        """Probability of the right answer to each problem."""
        with torch.no_grad():
            return (self.own * self.theta[:-1] + self.shared * self.theta[-1]).sigmoid().numpy()

    def twin(self) -> Coupled:
        return deepcopy(self)
