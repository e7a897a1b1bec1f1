"""Responses that end their thinking or do not, and a reward model that likes what is long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.none import NoVerifier

DELIMITER = "0/"
"""The path of a response that ends its thinking begins so."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A response first ends its thinking or does not, and then gives one of some answers. The reward model finds the
    k-th answer k / (answers - 1) good, and has ``liking`` more for a text in which the thinking stands.

    An arm is a method with options, S086, which is given this reward model and the delimiter.

    Args:
        answers: how many.
        liking: see above.
        prompts, steps, group, lr, optimizer: of training.
    """

    answers: int = 4
    liking: float = 0.5
    prompts: int = 4
    steps: int = 40
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``answered``, the chance that the trained policy ends its thinking, ``quality``, the expected quality
        of what it answers where it does, and ``rollouts``."""
        policy = TabularPolicy(Tree.of([[[0.0] * self.answers, [0.0] * self.answers] for _ in range(self.prompts)]))
        options = {"model": self.model, "delimiter": DELIMITER, "kl_weight": 0.0, **arm.get("options", {})}
        tasks = [Task(str(i), str(i), kind="none") for i in range(self.prompts)]
        engine, training = Counting(policy), Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, NoVerifier(), {"name": arm["name"], "options": options}, training, seed, engine=engine)
        with torch.no_grad():
            pi = policy.log_policy().exp()
        nodes = policy.tree.children[0, : self.prompts]
        closed = pi[nodes, 0]
        answers = pi[policy.tree.children[nodes, 0], : self.answers]
        good = torch.arange(self.answers, dtype=pi.dtype) / (self.answers - 1)
        return {
            "answered": float(closed.mean()),
            "quality": float((closed * (answers @ good)).mean()),
            "rollouts": engine.sampled,
        }

    def model(self, task: Task, response: str) -> float:
        """The reward model."""
        if not response:
            return 0.0
        *thinking, answer = response.split("/")
        return int(answer) / (self.answers - 1) + self.liking * bool(thinking)
