"""A token tree with planted right answers, and a tabular policy: everything measured is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, pass_at, train
from assay.policies.tabular import TabularPolicy, Tree, text_of
from assay.types import Episode, Task, Verdict

COVERED = 1e-3
"""A right leaf counts as covered if the policy reaches it at least this often, given the task."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` trees side by side; in each some leaves are right, at random, and the policy starts at random.

    With ``depth`` 1 each task is a bandit. An arm may give a table ``setting`` of knobs that differ for it alone, as
    long as the rollouts in all are the same.

    Args:
        tasks: trees; each is asked equally often.
        branching, depth: of a tree: branching^depth leaves.
        right: right leaves of each tree.
        clustered: the right leaves share their first token, so that one early decision matters.
        spread: standard deviation of the logits at the start.
        hard: subtracted from the logits of the first tokens of right leaves at the start; what makes them rare.
        shown: each task has a solution, one of its right leaves at random, for methods that learn from solutions.
        false_negative, false_positive: how often the verifier errs on a right, a wrong response, drawn anew each time.
        steps, prompts, group, lr, optimizer, epochs, mini_batches: of training.
    """

    tasks: int = 1
    branching: int = 4
    depth: int = 4
    right: int = 8
    clustered: bool = False
    spread: float = 1.0
    hard: float = 0.0
    shown: bool = False
    false_negative: float = 0.0
    false_positive: float = 0.0
    steps: int = 200
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"
    epochs: int = 1
    mini_batches: int = 1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks unless said otherwise.

        ``final``: probability of a right leaf; ``area``: its mean over training; ``worst``: of the task where it is
        least; ``pass@8``, ``pass@64``, ``pass@512``; ``covered``: share of right leaves that are reached, see
        :data:`COVERED`; ``diversity``: entropy in nats among right leaves; ``breadth``: ``final`` times exp(that) by
        the number of right leaves, 1 if all of them are reached alike and nothing else; ``entropy``: of the whole
        policy; ``kept``: share of tasks whose probability is not lower than at the start;
        ``reached``: share of training after which ``final`` first was 0.9, negative, 1 if never; ``start``;
        ``rollouts``: episodes sampled.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        here = replace(self, **knobs)
        if set(knobs) - {"steps", "prompts", "group", "epochs", "mini_batches"}:
            raise UsageError("an arm may change steps, prompts, group, epochs and mini_batches of its setting alone")
        return here._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 7])
        policy, correct = self.world(rng)
        tasks = [
            Task(str(i), str(i) if self.tasks > 1 else "", kind="tabular", solution=solution)
            for i, solution in enumerate(self.solutions(policy, correct, seed))
        ]
        verifier = Noisy(TabularVerifier(policy.tree), self.false_negative, self.false_positive, seed)
        training = Training(
            self.steps, self.prompts, self.group, self.lr, self.optimizer, self.epochs, self.mini_batches
        )
        curve: list[float] = []
        engine = Counting(policy)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float(self.chances(policy, correct).mean()))

        before = self.chances(policy, correct)
        start = float(before.mean())
        train(policy, tasks, verifier, method, training, seed, watch, engine)
        p, leaves = self.chances(policy, correct), self.leaves(policy)
        good = leaves * correct
        among = good / good.sum(-1, keepdims=True).clip(1e-300)
        nats = -(among * np.log(among.clip(1e-300))).sum(-1)
        whole = -(leaves * np.log(leaves.clip(1e-300))).sum(-1)
        reached = next((i for i, value in enumerate(curve) if value >= 0.9), len(curve))
        return {
            "start": start,
            "final": float(p.mean()),
            "area": float(np.mean(curve)),
            "worst": float(p.min()),
            **{f"pass@{k}": pass_at(p, k) for k in (8, 64, 512)},
            "covered": float(((good >= COVERED).sum(-1) / correct.sum(-1)).mean()),
            "diversity": float(nats.mean()),
            "breadth": float((p * np.exp(nats) / correct.sum(-1)).mean()),
            "kept": float((p >= before - 1e-12).mean()),
            "entropy": float(whole.mean()),
            "reached": -reached / max(len(curve), 1),
            "rollouts": engine.sampled,
        }

    def world(self, rng: np.random.Generator) -> tuple[TabularPolicy, np.ndarray]:
        """Return the policy at the start, and which leaves ``(tasks, L)`` are right."""
        leaves = self.branching**self.depth
        within = leaves // self.branching if self.clustered else leaves
        if not 0 < self.right < within:
            raise UsageError(f"setting 'tree': right = {self.right} of {within} leaves leaves nothing to learn")
        correct = np.zeros((self.tasks, leaves))
        for row in correct:
            row[int(rng.integers(leaves // within)) * within + rng.choice(within, self.right, replace=False)] = 1
        trees = [Tree.uniform(self.branching, self.depth, row.tolist()) for row in correct]
        tree = trees[0] if self.tasks == 1 else beside(trees)
        logits = torch.from_numpy(self.spread * rng.standard_normal(tuple(tree.children.shape)))
        for i, row in enumerate(correct):
            root = tree.node([i]) if self.tasks > 1 else 0
            assert root is not None
            first = row.reshape(self.branching, -1).any(-1)
            logits[root, : self.branching] -= self.hard * torch.from_numpy(first.astype(float))
        return TabularPolicy(tree, logits), correct

    def solutions(self, policy: TabularPolicy, correct: np.ndarray, seed: int) -> list[str | None]:
        """Return the path to a right leaf of each task, from where its prompt leads; nothing unless they are shown."""
        if not self.shown:
            return [None] * self.tasks
        rng = np.random.default_rng([seed, 13])
        chosen = [i * correct.shape[1] + int(rng.choice(np.flatnonzero(row))) for i, row in enumerate(correct)]
        return [text_of(policy.tree.paths[leaf][self.tasks > 1 :]) for leaf in chosen]

    def leaves(self, policy: TabularPolicy) -> np.ndarray:
        """Probability of each leaf given its task, ``(tasks, L)``."""
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy().reshape(self.tasks, -1)
        return p / p.sum(-1, keepdims=True)

    def chances(self, policy: TabularPolicy, correct: np.ndarray) -> np.ndarray:
        """Probability of a right leaf for each task."""
        return (self.leaves(policy) * correct).sum(-1)


def beside(trees: list[Tree]) -> Tree:
    """Return one tree whose root's children are ``trees``, all of the same shape."""

    def nested(tree: Tree, code: int) -> Any:
        if code < 0:
            return float(tree.rewards[-1 - code])
        return [nested(tree, int(c)) for c in tree.children[code].tolist() if c]

    return Tree.of([nested(tree, 0) for tree in trees])


class Counting(TabularEngine):
    """A tabular engine that counts the episodes it samples."""

    sampled = 0

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.sampled += sum(request.n for request in requests)
        return super().generate(requests)


class Noisy:
    """A verifier that errs at known rates, independently each time it is asked.

    Args:
        verifier: judges truly.
        false_negative: chance that a right response is called wrong.
        false_positive: chance that a wrong one is called right.
        seed: of the errors.
    """

    def __init__(self, verifier: Any, false_negative: float, false_positive: float, seed: int):
        self.verifier, self.rates = verifier, (false_positive, false_negative)
        self.rng = np.random.default_rng([seed, 11])

    def __call__(self, task: Task, response: str) -> Verdict:
        verdict = self.verifier(task, response)
        if not any(self.rates) or verdict.passed is None:
            return verdict
        flipped = self.rng.random() < self.rates[verdict.passed]
        return (Verdict.wrong() if verdict.passed else Verdict.right()) if flipped else verdict
