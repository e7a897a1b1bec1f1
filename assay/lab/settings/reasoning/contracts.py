"""Small programs put together of a contract and a body: some contracts are too weak, too strong, or nobody can tell."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.tasks.contracts import Problem, made, problems
from assay.types import Task, Verdict
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.syntax import written

UNTOLD = "forall k, m, n :: k > 0 && m > 0 && n > 0 ==> k * k * k + m * m * m != n * n * n"
"""True, without bounds, and beyond the built-in prover."""
POOL: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "absolute": (
        ("r >= 0 && (r == x || r == -x)", "r >= 0", "r == x || r == -x", "true", "r > 0", UNTOLD),
        ("{ if x >= 0 { r := x; } else { r := -x; } }", "{ r := x; }", "{ r := -x; }", "{ r := 0; }"),
    ),
    "larger": (
        ("r >= a && r >= b && (r == a || r == b)", "r >= a && r >= b", "r == a || r == b", "true", "r > a", UNTOLD),
        ("{ if a > b { r := a; } else { r := b; } }", "{ r := a; }", "{ r := b; }", "{ r := a + b; }"),
    ),
    "triangular": (
        ("2 * s == n * (n + 1)", "s >= 0", "s >= n", "true", "s == n", UNTOLD),
        (
            "{ s := 0; var i := 0; while i < n invariant 0 <= i <= n && 2 * s == i * (i + 1) "
            "{ i := i + 1; s := s + i; } }",
            "{ s := n; }",
            "{ s := 0; }",
            "{ s := 0; var i := 0; while i < n invariant i >= 0 && s >= i { i := i + 1; s := s + 2 * i; } }",
        ),
    ),
}
"""Of each problem postconditions and bodies; the first of each is the right one, and no other is."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy chooses a postcondition out of six and, if ``ask`` is ``all``, a body out of four, for each problem.

    What it has chosen is written out and judged by the arm's ``verifier``, which is the real one: tests are run and
    proofs are found. An arm is a method with ``verifier``, the verifier's name and options.

    Args:
        ask: ``all``, or ``spec`` for the postcondition alone.
        positive: tests of each problem.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    ask: Literal["all", "spec"] = "all"
    positive: int = 12
    spread: float = 0.5
    steps: int = 150
    prompts: int = 3
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over problems.

        ``right``: probability of the right postcondition, with the right body where one is asked for; ``area``: its
        mean over training; ``start``; ``paid``: probability of what the arm's verifier calls right; ``untold``: of the
        postcondition of which nobody can tell; ``rollouts``.
        """
        method = dict(arm)
        judge = Judge(json.dumps(method.pop("verifier")), self.ask, self.positive)
        many = [len(specs) for specs, _ in POOL.values()], [len(codes) for _, codes in POOL.values()]
        shape = [[0.0] * c if self.ask == "all" else 0.0 for c in [many[1][0]] * many[0][0]]
        tree = Tree.of([list(shape) for _ in POOL])
        policy = TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))
        tasks = [Task(name, str(i), kind="prover") for i, name in enumerate(POOL)]

        def share() -> np.ndarray:
            with torch.no_grad():
                p = policy.leaf_logprobs().exp().numpy().reshape(len(POOL), many[0][0], -1)
            return np.asarray(p / p.sum((1, 2), keepdims=True))

        def right() -> float:
            return float(share()[:, 0, 0].mean())

        curve: list[float] = []
        start, engine = right(), Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, method, training, seed, lambda *_: curve.append(right()), engine)
        p = share()
        worth = np.array(
            [[[judge.of(t, s, c).passed is True for c in range(p.shape[2])] for s in range(p.shape[1])] for t in tasks]
        )
        return {
            "start": start,
            "right": right(),
            "area": float(np.mean(curve)),
            "paid": float((p * worth).sum((1, 2)).mean()),
            "untold": float(p[:, -1].sum(-1).mean()),
            "rollouts": engine.sampled,
        }


@dataclass(frozen=True, slots=True)
class Judge:
    """The verifier of what the chosen pieces make, asked once for each in a process."""

    verifier: str
    ask: Literal["all", "spec"]
    positive: int

    def __call__(self, task: Task, response: str) -> Verdict:
        chosen = [int(x) for x in response.split("/")][-(2 if self.ask == "all" else 1) :]
        return self.of(task, chosen[0], chosen[1] if self.ask == "all" else 0)

    def of(self, task: Task, spec: int, code: int) -> Verdict:
        return _verdict(self.verifier, self.ask, self.positive, task.id, spec, code)


@functools.cache
def _verdict(verifier: str, ask: Literal["all", "spec"], positive: int, name: str, spec: int, code: int) -> Verdict:
    problem = _problem(name)
    head = written(parse(problem.source)).partition("  ensures")[0]
    specs, codes = POOL[name]
    text = f"{head}\n  ensures {specs[spec]}\n{codes[code] if ask == 'all' else ''}"
    found: Verdict = build("verify", json.loads(verifier))(made(problem, ask, positive), text)
    return found


def _problem(name: str) -> Problem:
    for problem in problems():
        if parse(problem.source).method.name == name:
            return problem
    raise UsageError(f"setting 'contracts': no problem {name!r}")
