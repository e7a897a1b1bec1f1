"""Solutions of a few steps, and a judge of steps that also likes the useless ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict

FINISH, USEFUL, USELESS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is up to ``longest`` steps, one token each: finish, a useful step, or a useless one.

    It is right if it finishes after at least ``need`` useful steps; more than those are useless. The verdict has the
    score of each step as part ``step k``, in [0, 1] for scores in [-1, 1]: what a process reward model would say that
    takes a useless step for a good one. The policy starts at random.

    Args:
        longest: steps, after which a response that has not finished is wrong.
        need: useful steps that a right answer takes.
        useful, useless, right, wrong: scores of a useful step, a useless one, a right finish, a wrong one.
        cut: score of the last step of a response that does not finish; ``None`` for that of the step as it is.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    longest: int = 6
    need: int = 2
    useful: float = 0.8
    useless: float = 0.5
    right: float = 0.9
    wrong: float = -0.6
    cut: float | None = None
    spread: float = 0.5
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy.

        ``solved``: probability of a right answer, and ``area`` its mean over training; ``useless``: expected number of
        useless steps, and ``concise`` its negative; ``length``: expected steps; ``start/...`` of ``solved`` and
        ``useless``; ``rollouts``: responses sampled.
        """
        policy = self.policy(seed)
        before = self.measure(policy)
        engine = Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        tasks = [Task(str(i), "", reference="right", kind="tabular") for i in range(self.prompts)]
        curve: list[float] = []
        watch = lambda *_: curve.append(self.measure(policy)["solved"])  # noqa: E731
        train(policy, tasks, self.verdict, arm, training, seed, watch, engine)
        return {
            **self.measure(policy),
            "area": float(np.mean(curve)),
            **{f"start/{k}": before[k] for k in ("solved", "useless")},
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start."""

        def node(path: tuple[int, ...]) -> Any:
            if path and (path[-1] == FINISH or len(path) == self.longest):
                return float(self.solves(path))
            return [node((*path, token)) for token in (FINISH, USEFUL, USELESS)]

        tree = Tree.of(node(()))
        noise = np.random.default_rng([seed, 7]).standard_normal(tuple(tree.children.shape))
        return TabularPolicy(tree, torch.from_numpy(self.spread * noise))

    def solves(self, path: tuple[int, ...]) -> bool:
        """Whether a response is right."""
        return path[-1] == FINISH and path.count(USEFUL) >= self.need

    def idle(self, path: tuple[int, ...]) -> int:
        """Useless steps of a response, useful ones that come too late among them."""
        return path.count(USELESS) + max(path.count(USEFUL) - self.need, 0)

    def verdict(self, task: Task, response: str) -> Verdict:
        """Return the true verdict, with the scores of the steps as its parts."""
        path, done, parts = path_of(response) or (), 0, {}
        for k, token in enumerate(path):
            score = self.useless
            if token == FINISH:
                score = self.right if done >= self.need else self.wrong
            elif token == USEFUL and done < self.need:
                score, done = self.useful, done + 1
            if self.cut is not None and k + 1 == self.longest and token != FINISH:
                score = self.cut
            parts[f"step {k}"] = (1 + score) / 2
        passed = bool(path) and self.solves(path)
        return Verdict(float(passed), passed, parts)

    def measure(self, policy: TabularPolicy) -> dict[str, float]:
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy()
        paths = policy.tree.paths
        solved, idle, length = (
            float(sum(w * f(path) for w, path in zip(p, paths, strict=True))) for f in (self.solves, self.idle, len)
        )
        return {"solved": solved, "useless": idle, "concise": -idle, "length": length}
