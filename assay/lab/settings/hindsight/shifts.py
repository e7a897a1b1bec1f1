"""A small policy that is trained, and a larger one that is not, about the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.lab.settings._tabular import Training, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` questions of ``depth`` decisions with ``branching`` choices; one path of each is right.

    Both policies' logits at the start are ``known`` on the right path, plus normal noise that they share and noise of
    each; the larger one knows more and is less noisy. The small one is trained by GRPO for ``steps``. The arm, a table
    of the strategy named by it, then answers with the larger; with ``alone = true`` the trained small one answers.

    Args:
        tasks, branching, depth: of the trees.
        known, more: what the small policy knows, and the larger one beyond that.
        shared, small, large: standard deviations of the noise.
        samples: answers to each question that are judged.
        steps, prompts, group, lr, optimizer: of the small one's training.
    """

    tasks: int = 8
    branching: int = 4
    depth: int = 2
    known: float = 0.5
    more: float = 1.0
    shared: float = 0.5
    small: float = 0.5
    large: float = 0.25
    samples: int = 100
    steps: int = 60
    prompts: int = 8
    group: int = 8
    lr: float = 3.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the share of sampled answers that is ``right``, and exactly the chances of the policies: ``large`` and
        ``small`` before, and ``trained``, of the small one after its training.

        Raises:
            UsageError: an arm of a method that is no strategy of two small models.
        """
        options = {**arm}
        if options.pop("name", None) != "S214":
            raise UsageError("setting 'shifts': an arm is {name = S214, weight = ...} or {name = S214, alone = true}")
        alone = bool(options.pop("alone", False))
        rng = np.random.default_rng([seed, 59])
        truth = rng.integers(self.branching, size=(self.tasks, self.depth))

        def leaves(path: tuple[int, ...], done: tuple[int, ...] = ()) -> Any:
            if len(done) == self.depth:
                return float(done == path)
            return [leaves(path, (*done, a)) for a in range(self.branching)]

        tree = Tree.of([leaves(tuple(path)) for path in truth.tolist()])
        shape = tuple(tree.children.shape)
        right = np.zeros(shape)
        for i, path in enumerate(truth.tolist()):
            for t, token in enumerate(path):
                right[tree.node((i, *path[:t])), token] = 1.0
        common = self.shared * rng.standard_normal(shape)

        def policy(known: float, noise: float) -> TabularPolicy:
            logits = known * right + common + noise * rng.standard_normal(shape)
            return TabularPolicy(tree, torch.from_numpy(logits))

        base, big = policy(self.known, self.small), policy(self.known + self.more, self.large)
        tuned = base.twin()

        def chance(of: TabularPolicy) -> float:
            log_p = of.log_policy().detach()
            paths = [[log_p[tree.node((i, *p[:t])), a] for t, a in enumerate(p)] for i, p in enumerate(truth.tolist())]
            return float(np.mean([float(torch.stack(steps).sum().exp()) for steps in paths]))

        tasks, judge = [Task(str(i), str(i), kind="tabular") for i in range(self.tasks)], TabularVerifier(tree)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(tuned, tasks, judge, {"name": "grpo"}, training, seed)
        engine = TabularEngine(tuned if alone else big)
        spec = {"name": "sample"} if alone else {"name": "rast", "tuned": tuned, "base": base, **options}
        strategy = build("inference", spec)
        asked = [task for task in tasks for _ in range(self.samples)]
        answers = strategy(asked, engine, Budget(samples=1), np.random.default_rng([seed, 61]))
        passed = [judge(task, answer.text).score for task, answer in zip(asked, answers, strict=True)]
        exact = {"large": chance(big), "small": chance(base), "trained": chance(tuned)}
        return {"right": float(np.mean(passed)), **exact}
