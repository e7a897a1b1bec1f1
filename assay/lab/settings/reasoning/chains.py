"""Right and wrong chains of thought: only answers are seen, and each kind leads to right ones at its own rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting, Noisy, beside
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Each of ``tasks`` has two responses, a right and a wrong chain; the answer is right by chance, anew each time.

    An arm may give a table ``setting`` of ``alpha`` and ``beta`` for it alone.

    Args:
        tasks: asked in turn.
        start: probability of the right chain at the start.
        alpha, beta: probability of a right answer after the right and after the wrong chain.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: a probability outside (0, 1) for ``start``, or outside [0, 1] for the others.
    """

    tasks: int = 1
    start: float = 0.3
    alpha: float = 0.9
    beta: float = 0.2
    steps: int = 500
    prompts: int = 1
    group: int = 8
    lr: float = 0.1
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not (0 < self.start < 1 and 0 <= self.alpha <= 1 and 0 <= self.beta <= 1):
            raise UsageError("setting 'chains': start must be in (0, 1), alpha and beta in [0, 1]")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over tasks.

        ``sound``: probability p of the right chain, and ``area`` its mean over training; ``answer``: of a right answer;
        ``pass@64`` by answers, and ``cot-pass@64``, by answers of right chains; ``rollouts``.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"alpha", "beta"}:
            raise UsageError("an arm may change alpha and beta of its setting alone")
        return replace(self, **knobs)._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        trees = [Tree.bandit(2, [1.0, 0.0]) for _ in range(self.tasks)]
        tree = beside(trees)
        logits = torch.zeros(tree.children.shape, dtype=torch.float64)
        nodes = tree.children[0, : self.tasks]
        logits[nodes, 0] = float(np.log(self.start / (1 - self.start)))
        policy = TabularPolicy(tree, logits)
        verifier = Noisy(TabularVerifier(tree), 1 - self.alpha, self.beta, seed)
        engine = Counting(policy)

        def sound() -> np.ndarray:
            with torch.no_grad():
                return np.asarray(policy.log_policy()[nodes, 0].exp().numpy())

        curve: list[float] = []
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.tasks)]
        watch = lambda *_: curve.append(float(sound().mean()))  # noqa: E731
        train(policy, tasks, verifier, method, training, seed, watch, engine)
        p = sound()
        answer = p * self.alpha + (1 - p) * self.beta
        return {
            "sound": float(p.mean()),
            "area": float(np.mean(curve)),
            "answer": float(answer.mean()),
            "pass@64": float((1 - (1 - answer) ** 64).mean()),
            "cot-pass@64": float((1 - (1 - p * self.alpha) ** 64).mean()),
            "rollouts": engine.sampled,
        }
