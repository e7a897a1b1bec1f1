"""Repairs of four choices each, by a policy that heeds what a teacher says of one or two of them after a failure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.base import Request
from assay.engines.tabular_turns import TabularTurns, opened
from assay.environments.base import Action, Observation, Step
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.tasks.listed import Listed
from assay.types import Episode, Message, Task, Tool, Verdict
from assay.verify.none import NoVerifier

TURNS = 4
"""The file, the function in it, what kind of mistake there is, and the value that belongs there."""
TELLS = ((), (0, 1), (2,), (3,))
"""Which choices are named: by nobody, by where to look, by a plan, by what the tests meant."""
NAMED = (re.compile(r"file(\d+)\.py at function(\d+)"), re.compile(r"mistake (\d+)"), re.compile(r"wants (\d+)"))
"""How guidance of each kind names them."""


class Spent(Exception):
    """As many episodes have been sampled as were to be."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A repair is four turns with one of ``options`` in each; it passes if all four are the right ones of its problem.

    Every option has at first about the same chance, so that unaided success is options ** -4. What stands before the
    question names the choices that its kind of guidance is about (:data:`TELLS`), and adds ``bonus`` to the logits of
    what it names. The policy has one table, of a problem's turns: whoever is told heeds it mostly, and what is learned
    of a turn without being told holds with it too. An arm names a rollout, with its options but for the environment.

    Args:
        problems, options: counts.
        bonus: of a choice that is named, in logits.
        spread: standard deviation of the logits.
        rollouts: training ends after the step in which so many episodes have been sampled, guided ones among them.
        prompts, group, lr, optimizer: of training.
    """

    problems: int = 1
    options: int = 4
    bonus: float = 3.5
    spread: float = 0.1
    rollouts: int = 320
    prompts: int = 1
    group: int = 8
    lr: float = 25.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances of success without guidance, means over problems: ``start``, ``solved`` at the end, and
        ``area``, its mean over episodes sampled; ``told``, the same as ``solved`` under a kind of guidance, a mean over
        kinds, and at the start ``told/start``; ``rollouts`` and ``steps``."""
        policy = self.policy(seed)
        engine, curve = Heeding(policy), list[tuple[int, float]]()
        start, told = policy.solved(0), self.told(policy)
        method = {**arm, "rollout": {"environment": f"{__file__}:Repairs", **arm["rollout"]}}

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append((engine.sampled, policy.solved(0)))
            if engine.sampled >= self.rollouts:
                raise Spent

        training = Training(10**9, self.prompts, self.group, self.lr, self.optimizer, max_tokens=1)
        with suppress(Spent):
            train(policy, tasks_of(policy.answers), NoVerifier(), method, training, seed, watch, engine)
        counts = np.diff([0, *(n for n, _ in curve)])
        return {
            "start": start,
            "solved": curve[-1][1],
            "area": float(np.average([p for _, p in curve], weights=counts)),
            "told": self.told(policy),
            "told/start": told,
            "rollouts": engine.sampled,
            "steps": len(curve),
        }

    @staticmethod
    def told(policy: Repairing) -> float:
        """Chance of success under guidance, a mean over its kinds."""
        return float(np.mean([policy.solved(kind) for kind in range(1, len(TELLS))]))

    def policy(self, seed: int) -> Repairing:
        """Return the policy at the start."""
        answers = np.random.default_rng([seed, 7]).integers(self.options, size=(self.problems, TURNS))
        table = jitter(self.spread, seed, self.problems, TURNS, self.options)
        return Repairing(answers, torch.from_numpy(table), self.bonus)


def tasks_of(answers: np.ndarray) -> list[Task]:
    """Return a task for each problem, with what its teacher knows."""
    return [
        Task(
            str(i),
            f"repair {i}",
            reference=[file, function, mistake, value],
            kind="none",
            meta={"path": f"file{file}.py", "function": f"function{function}", "bug": f"there is mistake {mistake}"},
        )
        for i, (file, function, mistake, value) in enumerate(answers.tolist())
    ]


class Repairs:
    """Takes one number a turn; a failed attempt says what value the tests want, and nothing else."""

    def tasks(self) -> Listed:
        return Listed([])

    def reset(self, task: Task, seed: int) -> Observation:
        self.right, self.made = list(task.reference), list[int]()
        return Observation((Message(role="user", content=str(task.question)),))

    def step(self, action: Action) -> Step:
        self.made.append(int(action.text))
        return Step(Observation((Message(role="user", content="Go on."),)), terminated=len(self.made) == TURNS)

    def verdict(self) -> Verdict:
        return Verdict.right() if self.made == self.right else Verdict.wrong(f"the test wants {self.right[-1]}")

    def close(self) -> None:
        pass


class Repairing(TabularPolicy):
    """A policy over the tree problem / kind of guidance / four choices, in which what is named adds to logits.

    Args:
        answers: ``(problems, 4)``, the right options.
        table: ``(problems, 4, options)`` logits without guidance, the only parameter.
        bonus: of what guidance names.
    """

    def __init__(self, answers: np.ndarray, table: Tensor, bonus: float):
        problems, _, options = table.shape
        self.answers = answers

        def choices(right: Sequence[int], t: int, so_far: bool) -> Any:
            if t == TURNS:
                return float(so_far)
            return [choices(right, t + 1, so_far and k == right[t]) for k in range(options)]

        self.tree = Tree.of([[choices(a, 0, True) for _ in TELLS] for a in answers.tolist()])
        self.table = torch.nn.Parameter(table.clone())
        self.module = torch.nn.ParameterDict({"table": self.table})
        self.named = torch.zeros(len(TELLS), problems, TURNS, options, dtype=table.dtype)
        for kind, turns in enumerate(TELLS):
            for i, t in product(range(problems), turns):
                self.named[kind, i, t, answers[i, t]] = bonus
        at = [
            (self.tree.node((i, kind, *made)), kind, i, t)
            for i, kind, t in product(range(problems), range(len(TELLS)), range(TURNS))
            for made in product(range(options), repeat=t)
        ]
        self._at, self._kind, self._problem, self._turn = torch.tensor(at).mT

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        rows = torch.zeros(self.tree.children.shape, dtype=self.table.dtype)
        here = (self.table + self.named)[self._kind, self._problem, self._turn]
        return rows.index_put((self._at[:, None], torch.arange(here.shape[1])[None]), here)

    def solved(self, kind: int) -> float:
        """Chance of success under a kind of guidance, a mean over problems."""
        with torch.no_grad():
            logp = (self.table + self.named[kind]).log_softmax(-1)
            right = torch.from_numpy(self.answers)[..., None]
            return float(logp.gather(-1, right)[..., 0].sum(-1).exp().mean())

    def twin(self) -> Repairing:
        return deepcopy(self)


class Heeding(TabularTurns):
    """Reads which problem it is and what is said of it, and counts the episodes it has begun."""

    policy: Repairing

    def __init__(self, policy: Repairing):
        options = policy.table.shape[-1]
        super().__init__(policy, [[str(k) for k in range(options)]], {})
        self.sampled = 0

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        said, _, problem = opened(messages).rpartition("repair ")
        kind = next((k for k, pattern in enumerate(NAMED, 1) if pattern.search(said)), 0)
        return np.array([int(problem), kind], dtype=np.int64)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.sampled += sum(request.n for request in requests if not request.prefix)
        return super().generate(requests)
