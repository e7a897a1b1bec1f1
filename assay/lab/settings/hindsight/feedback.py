"""Questions whose verifier says which decision was wrong, to a policy that heeds what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Prompt, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` trees of branching^depth leaves, one of them right, whose policy also reads remarks on an attempt.

    The prompt of question i is ``i``; ``i wrong 0/2`` adds that the path 0/2 is wrong, ``i right 0/2`` that it is
    right. A remark shares all its parameters with the plain question but for one scalar, ``trust``, which it takes off
    the logit of the path's last decision, or adds to those of all its decisions. What the verifier says of a wrong
    response is the remark on its path up to the first decision that no right path shares. Logits at the start are
    normal, those of the right path's decisions lower by ``hard``. An arm may give a table ``setting`` with ``steps`` or
    ``group`` of its own, as long as the rollouts in all are the same.

    Args:
        tasks, branching, depth: of the trees.
        spread: standard deviation of the logits at the start.
        hard: see above.
        trust: at the start; above 0 the policy heeds remarks, at 0 it has yet to learn to.
        named: whether the verifier names the wrong decision, rather than saying nothing.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: a count below 1, or less than two branches.
    """

    tasks: int = 4
    branching: int = 4
    depth: int = 2
    spread: float = 0.5
    hard: float = 2.0
    trust: float = 3.0
    named: bool = True
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if min(self.tasks, self.depth) < 1 or self.branching < 2:
            raise UsageError("setting 'feedback': needs at least one task, one decision and two branches")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions. ``final``: probability of the right leaf without remarks;
        ``area``: its mean over training; ``start``; ``told``: after the remark on a wrong response; ``trust``;
        ``rollouts``."""
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"steps", "group"}:
            raise UsageError("setting 'feedback': an arm may change steps and group alone")
        return replace(self, **knobs)._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 47])
        leaves = list(product(range(self.branching), repeat=self.depth))
        right = [leaves[i] for i in rng.integers(len(leaves), size=self.tasks)]

        def normal(shape: tuple[int, ...]) -> np.ndarray:
            return self.spread * rng.standard_normal(shape)

        policy = Heeding(right, self.branching, normal, self.hard, self.trust)

        def judge(task: Task, response: str) -> Verdict:
            path, truth = path_of(response), right[int(task.id.partition("/")[0])]
            if path == truth:
                return Verdict.right()
            return Verdict.wrong(remark_on(path or (), truth) if self.named else "")

        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.tasks)]
        curve, engine, start = list[float](), Remarking(policy), policy.chance()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, method, training, seed, lambda *_: curve.append(policy.chance()), engine)
        return {
            "final": policy.chance(),
            "area": float(np.mean(curve)),
            "start": start,
            "told": policy.told(),
            "trust": float(policy.trust.detach()),
            "rollouts": engine.sampled,
        }


def remark_on(path: tuple[int, ...], truth: tuple[int, ...]) -> str:
    """Say which decision of a wrong path is the first that the right one does not share."""
    same = next((t for t, (a, b) in enumerate(zip(path, truth, strict=False)) if a != b), len(path) - 1)
    return f"wrong {text_of(path[: same + 1])}"


class Heeding(TabularPolicy):
    """The policy of :class:`Setting`; its tree has a branch for each question, and in it one for each remark.

    Args:
        right: the right path of each question.
        branching: choices at a decision.
        normal: draws logits of a shape.
        hard: taken off the right paths' logits.
        trust: at the start.
    """

    def __init__(self, right: list[tuple[int, ...]], branching: int, normal: Any, hard: float, trust: float):
        depth = len(right[0])
        prefixes = [p for n in range(1, depth + 1) for p in product(range(branching), repeat=n)]
        remarks = [("", ()), *(("wrong", p) for p in prefixes), *(("right", p) for p in prefixes if len(p) == depth)]
        self.remarks = {remark: i for i, remark in enumerate(remarks)}
        self.right = right

        def leaves(truth: tuple[int, ...], done: tuple[int, ...] = ()) -> Any:
            if len(done) == depth:
                return float(done == truth)
            return [leaves(truth, (*done, a)) for a in range(branching)]

        self.tree = Tree.of([[leaves(truth) for _ in self.remarks] for truth in right])
        inner = [p for n in range(depth) for p in product(range(branching), repeat=n)]
        base = np.asarray(normal((len(right), len(inner), branching)))
        of, own = torch.full((len(self.tree.children),), -1), torch.zeros(self.tree.children.shape, dtype=torch.float64)
        for i, truth in enumerate(right):
            for t, token in enumerate(truth):
                base[i, inner.index(truth[:t]), token] -= hard
            for (kind, prefix), view in self.remarks.items():
                for j, path in enumerate(inner):
                    of[self.tree.node((i, view, *path))] = i * len(inner) + j
                for t, token in enumerate(prefix):
                    if kind == "right" or t == len(prefix) - 1:
                        own[self.tree.node((i, view, *prefix[:t])), token] = 1.0 if kind == "right" else -1.0
        self.where, self.own = of, own
        self.base = torch.nn.Parameter(torch.from_numpy(base))
        self.trust = torch.nn.Parameter(torch.tensor(trust, dtype=torch.float64))
        self.module = torch.nn.ParameterDict({"base": self.base, "trust": self.trust})

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        flat = self.base.flatten(0, 1)
        table = torch.where((self.where >= 0)[:, None], flat[self.where.clamp(min=0)], 0.0)
        width = self.tree.children.shape[1]
        table = torch.nn.functional.pad(table, (0, width - table.shape[1]))
        return table + self.trust * self.own

    def path(self, question: int, kind: str = "", of: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return where the response to a question with a remark begins."""
        return question, self.remarks[kind, of]

    @torch.no_grad()
    def chance(self) -> float:
        """Mean probability of the right path without remarks."""
        log_p = self.log_policy()
        return float(np.mean([self._along(log_p, self.path(i), p) for i, p in enumerate(self.right)]))

    @torch.no_grad()
    def told(self) -> float:
        """Mean probability of the right path after the remark on a wrong one, drawn by the policy."""
        log_p, out = self.log_policy(), list[float]()
        leaves = [p for kind, p in self.remarks if kind == "right"]
        for i, truth in enumerate(self.right):
            drawn = np.array([self._along(log_p, self.path(i), leaf) * (leaf != truth) for leaf in leaves])
            after = [self._along(log_p, self.path(i, *said(remark_on(leaf, truth))), truth) for leaf in leaves]
            out.append(float(drawn @ np.array(after) / max(drawn.sum(), 1e-300)))
        return float(np.mean(out))

    def _along(self, log_p: Tensor, start: tuple[int, ...], path: tuple[int, ...]) -> float:
        steps = [log_p[self.tree.node((*start, *path[:t])), token] for t, token in enumerate(path)]
        return float(torch.stack(steps).sum().exp())

    def twin(self) -> Heeding:
        return deepcopy(self)


def said(remark: str) -> tuple[str, tuple[int, ...]]:
    kind, _, path = remark.partition(" ")
    return kind, path_of(path) or ()


class Remarking(Counting):
    """Reads a question with a remark."""

    policy: Any

    def encode(self, prompt: Prompt) -> np.ndarray:
        question, _, remark = str(prompt).partition(" ")
        return np.asarray(self.policy.path(int(question), *said(remark)), dtype=np.int64)
