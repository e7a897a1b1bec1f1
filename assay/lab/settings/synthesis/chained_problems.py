"""Problems alone and in chains: solving is one skill, carrying a result on to the next problem another."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A response to a chain of n problems solves each rightly or not, and between two carries the result on or not; an
    answer is right iff its problem is solved, and so are all before it and carried on.

    Two weights serve chains of all lengths: of solving a problem, and of carrying on. An arm says how long the chains
    are that it trains on (``n``), and by which reward of the verifier ``boxed_answers`` (``by``).

    Args:
        longest: of the chains that are measured.
        solve, carry: logits at the start.
        spread: standard deviation of what is added to them.
        steps, prompts, group, lr, optimizer: of training.
    """

    longest: int = 4
    solve: float = 0.0
    carry: float = -1.0
    spread: float = 0.3
    steps: int = 30
    prompts: int = 2
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the chances after training that a chain of four (``all of 4``), or of another length, is right as a
        whole; of ``solving`` and ``carrying``; and ``rollouts``."""
        weights = np.array([self.solve, self.carry]) + jitter(self.spread, seed, 2)
        policy = Chained(int(arm["n"]), torch.from_numpy(weights))
        engine, verifier = Counting(policy), build("verify", {"name": "boxed_answers", "by": arm["by"]})

        def judge(task: Task, response: str) -> Verdict:
            found: Verdict = verifier(task, written(response))
            return found

        answers = {"answers": ["7"] * int(arm["n"]), "by": arm["by"]}
        tasks = [Task(f"t{i}", f"chain {i}", answers, "boxed_answers") for i in range(self.prompts)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, {"name": "grpo"}, training, seed, engine=engine)
        solve, carry = policy.theta.detach().sigmoid().tolist()
        chances = {f"all of {n}": solve**n * carry ** (n - 1) for n in range(1, self.longest + 1)}
        return {**chances, "solving": solve, "carrying": carry, "rollouts": engine.sampled}


def written(path: str) -> str:
    """Return a path as a response: an answer for each problem, 7 where it is right."""
    steps = [int(token) for token in path.split("/")]
    right, answers = True, []
    for k, token in enumerate(steps):
        right = right and token == 0
        if k % 2 == 0:
            answers.append(7 if right else 8)
    return "### Final Answers\n" + "\n".join(f"Problem {k}: \\boxed{{{a}}}" for k, a in enumerate(answers, 1))


class Chained(TabularPolicy):
    """A tabular policy that solves, carries on, solves, ...: token 0 is right at each of 2 n - 1 decisions.

    Args:
        n: problems.
        weights: ``(2,)`` logits of solving and of carrying on, at first.
    """

    def __init__(self, n: int, weights: Tensor):
        self.tree = Tree.uniform(2, 2 * n - 1)
        self.theta = torch.nn.Parameter(weights.clone())
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        depth = torch.zeros(len(self.tree.children), dtype=torch.int64)
        for path in self.tree.paths:
            for d in range(len(path)):
                depth[self.tree.node(path[:d]) or 0] = d
        self.skill = depth % 2

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        return torch.stack([self.theta[self.skill], torch.zeros(len(self.skill), dtype=self.theta.dtype)], -1)

    def twin(self) -> Chained:
        return deepcopy(self)
