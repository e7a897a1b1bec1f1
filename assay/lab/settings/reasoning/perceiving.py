"""A thing that is hard to see, and two ways to answer: by what was seen, or by guessing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Episode, Task, Verdict

SEES, REASONS = "0", "1"
QUESTION = "What is there?"


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy sees rightly with a probability that is the same whether it is asked what it sees or reasons.

    Who reasons sees first and then answers by what was seen, right iff that was, or guesses. An arm may give a table
    ``setting`` with a ``group`` of its own: an arm that asks two things of each task samples twice as many responses.

    Args:
        sees: the probability at the start.
        guess: chance that a guess is right.
        spread: standard deviation of the logit of answering by what was seen, 0 in the mean.
        steps, group, lr: of training, on one task.
    """

    sees: float = 0.15
    guess: float = 0.4
    spread: float = 0.3
    steps: int = 100
    group: int = 5
    lr: float = 0.1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``sees`` and ``evidence``, the probabilities of seeing rightly and of answering by what was seen after
        training, ``early``, that of seeing rightly after half of it, and ``rollouts``."""
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"group"}:
            raise UsageError("an arm may change the group of its setting alone")
        rng = np.random.default_rng([seed, 107])
        policy = Seeing(math.log(self.sees / (1 - self.sees)), self.spread * float(rng.standard_normal()))
        engine, curve = Looking(policy), list[float]()

        def judge(task: Task, response: str) -> Verdict:
            path = path_of(response) or (1,)
            if task.parent is not None:
                return Verdict(float(path[0] == 0), path[0] == 0)
            right = path == (0, 0) or (path[-1] == 1 and bool(rng.random() < self.guess))
            return Verdict(float(right), right)

        task = Task("it", REASONS, kind="perceiving", meta={"checklist": [{"question": QUESTION, "answer": "it"}]})
        training = Training(self.steps, 1, int(knobs.get("group", self.group)), self.lr)
        train(policy, [task], judge, method, training, seed, lambda *_: curve.append(policy.chances()[0]), engine)
        sees, evidence = policy.chances()
        early = curve[self.steps // 2 - 1]
        return {"sees": sees, "evidence": evidence, "early": early, "rollouts": float(engine.sampled)}


class Seeing(TabularPolicy):
    """Two numbers: the logit of seeing rightly, wherever it sees, and that of answering by what was seen."""

    def __init__(self, sees: float, evidence: float):
        self.tree = Tree.of([[0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]])
        self.theta = torch.nn.Parameter(torch.tensor([sees, evidence], dtype=torch.float64))
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        nodes = [self.tree.node(path) for path in ([0], [1], [1, 0], [1, 1])]
        self.places = torch.tensor(nodes)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = torch.zeros(self.tree.children.shape, dtype=torch.float64)
        return table.index_put((self.places, torch.zeros_like(self.places)), self.theta[[0, 0, 1, 1]])

    def chances(self) -> tuple[float, float]:
        """Probability of seeing rightly, and of answering by what was seen."""
        sees, evidence = self.theta.detach().sigmoid().tolist()
        return sees, evidence

    def twin(self) -> Seeing:
        return deepcopy(self)


class Looking(Counting):
    """A checklist begins where the policy sees, all else where it reasons."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return super().generate([replace(r, prompt=SEES if QUESTION in str(r.prompt) else REASONS) for r in requests])
