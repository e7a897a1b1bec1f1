"""A fork that an expert takes as his pupil does, and after which he knows what to do on one side only."""

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
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` questions of two decisions with ``branching`` choices each; after each first one, one second is right.

    The prompt of question i is ``i/0``; ``i/1``, its reference, is the question with its answer. With the answer the
    policy takes the first decision as it does without, which share their logits. After one first decision, the known
    one, it then does what is right with probability ``sure``; after the others it has no idea.

    Args:
        tasks, branching: counts, at least 1 and 2.
        spread: standard deviation of the logits without the answer at the start.
        sure: below 1 and above 1 / branching.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: a count or ``sure`` out of range.
    """

    tasks: int = 4
    branching: int = 4
    spread: float = 0.5
    sure: float = 0.95
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.branching < 2 or not 1 / self.branching < self.sure < 1:
            raise UsageError(
                "setting 'fork': needs a task, two branches, and sure below 1 and above 1 / branching, not "
                f"{self.tasks}, {self.branching} and {self.sure:g}"
            )

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions. ``final``: probability to be right without the answer;
        ``area``: its mean over training; ``start``; ``known``: probability of the known branch; ``rollouts``."""
        rng, b = np.random.default_rng([seed, 53]), self.branching
        right, known = rng.integers(b, size=(self.tasks, b)), rng.integers(b, size=self.tasks)
        sub = [[[float(a == r) for a in range(b)] for r in row] for row in right.tolist()]
        policy = Forked(Tree.of([[one, one] for one in sub]))
        gap = np.log(self.sure * (b - 1) / (1 - self.sure))
        with torch.no_grad():
            for i in range(self.tasks):
                start = torch.from_numpy(jitter(self.spread, seed + 1000 * i, b + 1, b))
                policy.table[policy.tree.node((i, 0)), :b] = start[0]
                for first in range(b):
                    policy.table[policy.tree.node((i, 0, first)), :b] = start[1 + first]
                policy.table[policy.tree.node((i, 1, int(known[i]))), right[i, known[i]]] = gap

        def measure() -> tuple[float, float]:
            p = policy.log_policy().detach().exp()
            hits, side = list[float](), list[float]()
            for i in range(self.tasks):
                first = p[policy.tree.node((i, 0)), :b]
                second = torch.stack([p[policy.tree.node((i, 0, a)), right[i, a]] for a in range(b)])
                hits.append(float(first @ second))
                side.append(float(first[known[i]]))
            return float(np.mean(hits)), float(np.mean(side))

        start_value, curve, engine = measure()[0], list[float](), Counting(policy)
        tasks = [Task(str(i), f"{i}/0", reference=f"{i}/1", kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        judge = TabularVerifier(policy.tree)
        train(policy, tasks, judge, arm, training, seed, lambda *_: curve.append(measure()[0]), engine)
        final, side_taken = measure()
        area = float(np.mean(curve))
        return {"final": final, "area": area, "start": start_value, "known": side_taken, "rollouts": engine.sampled}


class Forked(TabularPolicy):
    """A tabular policy whose two views of a question share the logits of the first decision."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.table = torch.nn.Parameter(torch.zeros(tree.children.shape, dtype=torch.float64))
        self.module = torch.nn.ParameterDict({"table": self.table})
        views = [[int(tree.children[tree.children[0, i], v]) for v in (0, 1)] for i in range(tree.children.shape[1])]
        # A question's place among the first decision's children may be one that is no question's.
        self.plain, self.shown = torch.tensor([v for v in views if v[0] > 0 and v[1] > 0]).T

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        return self.table.index_put((self.shown,), self.table[self.plain])

    def twin(self) -> Forked:
        return deepcopy(self)
