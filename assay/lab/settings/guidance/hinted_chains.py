"""Chains of choices of which every one must be right, and prompts that show the beginning of the right ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Prompt, Task, Verdict

_PROBLEM = re.compile(r"problem (\d+):")


class Spent(Exception):
    """As many responses have been sampled as were to be."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A response to a problem is up to ``length`` symbols and ends with the first wrong one, or is right as a whole.

    A right symbol has at first a chance of about ``chance``, so that unaided success is chance ** length. The policy
    has one table, of a problem's positions. A prompt that shows symbols, as in ``problem 0: ... 2/4/0``, adds ``bonus``
    to the logits of the right symbols at as many positions as are shown rightly from the first on: whoever is shown a
    symbol mostly writes it down, and what is learned of a position with the symbol in sight is learned without.

    A task's ``solution`` is the right sequence, its ``hints`` show one symbol more each, and the feedback of a wrong
    response's verdict is what was right of it and the symbol that should have come next.

    Args:
        problems, length, symbols: of the task.
        chance, spread: of a right symbol at first; standard deviation of the logits around it.
        bonus: of a shown symbol, in logits.
        graded: a verdict's score is the share of the sequence that was right before the first wrong symbol.
        rollouts: training ends after the step in which so many responses have been sampled, those to prompts with hints
            among them.
        prompts, group, lr, optimizer: of training.
    """

    problems: int = 1
    length: int = 6
    symbols: int = 5
    chance: float = 0.1
    spread: float = 0.1
    bonus: float = 3.5
    graded: bool = False
    rollouts: int = 800
    prompts: int = 1
    group: int = 8
    lr: float = 5.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances of success without hints, means over problems: ``start``, ``solved`` at the end, and
        ``area``, its mean over responses sampled; ``rollouts`` and ``steps``; ``balance``, minus the mean
        distance of a group's share of right responses from one half; in how many of these a hint helped
        (``helped``), and the mean level of the hint in the first and last quarter of them."""
        policy = self.policy(seed)
        engine = Reading(policy)
        training = Training(10**9, self.prompts, self.group, self.lr, self.optimizer, max_tokens=self.length)
        curve, levels, start = list[tuple[int, float]](), list[float](), policy.solved()
        away = list[float]()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append((engine.sampled, policy.solved()))
            away.extend(abs(share - 0.5) for share in shares(batch))
            levels.extend([metrics["surgery/level"]] if metrics.get("surgery/level") else [])
            if engine.sampled >= self.rollouts:
                raise Spent

        with suppress(Spent):
            train(
                policy,
                self.tasks(policy.answers),
                Judge(policy.answers, self.graded),
                arm,
                training,
                seed,
                watch,
                engine,
            )
        counts = np.diff([0, *(n for n, _ in curve)])
        quarter = max(1, len(levels) // 4)
        return {
            "start": start,
            "solved": curve[-1][1],
            "area": float(np.average([p for _, p in curve], weights=counts)),
            "rollouts": engine.sampled,
            "steps": len(curve),
            "balance": -float(np.mean(away)) if away else -0.5,
            "helped": len(levels),
            "first_level": float(np.mean(levels[:quarter])) if levels else 0.0,
            "last_level": float(np.mean(levels[-quarter:])) if levels else 0.0,
        }

    def policy(self, seed: int) -> Chains:
        """Return the policy at the start."""
        rng = np.random.default_rng([seed, 7])
        answers = rng.integers(self.symbols, size=(self.problems, self.length))
        table = torch.from_numpy(jitter(self.spread, seed, self.problems, self.length, self.symbols))
        right = torch.nn.functional.one_hot(torch.from_numpy(answers), self.symbols)
        lift = math.log(self.chance / (1 - self.chance) * (self.symbols - 1))
        return Chains(answers, table + lift * right, self.bonus)

    def tasks(self, answers: np.ndarray) -> list[Task]:
        """Return a task for each problem."""
        paths = [text_of(a) for a in answers]
        hints = [tuple(text_of(a[: k + 1]) for k in range(self.length)) for a in answers]
        return [
            Task(str(i), f"problem {i}:", "right", "tabular", solution=path, hints=h)
            for i, (path, h) in enumerate(zip(paths, hints, strict=True))
        ]


def shares(batch: Batch) -> list[float]:
    """Share of right responses of each group that is learned from."""
    right = torch.tensor([float(v.passed is True) for v in batch.verdicts])
    return [float(right[batch.group == g].mean()) for g in batch.group.unique()]


class Chains(TabularPolicy):
    """A policy over the tree problem / symbols shown / right symbols so far, in which what is shown adds to logits.

    Args:
        answers: ``(problems, length)``, the right symbols.
        table: ``(problems, length, symbols)`` logits without anything shown, the only parameter.
        bonus: of a right symbol at a position that is shown.
    """

    def __init__(self, answers: np.ndarray, table: Tensor, bonus: float):
        _, length, symbols = table.shape
        self.answers = answers

        def chain(right: Sequence[int], t: int) -> Any:
            if t == length:
                return 1.0
            return [chain(right, t + 1) if k == right[t] else 0.0 for k in range(symbols)]

        self.tree = Tree.of([[chain(a, 0) for _ in range(length + 1)] for a in answers.tolist()])
        self.table = torch.nn.Parameter(table.clone())
        self.module = torch.nn.ParameterDict({"table": self.table})
        nodes, fixed = [], []
        for i, right in enumerate(answers.tolist()):
            for k in range(length + 1):
                for t in range(length):
                    nodes.append((self.tree.node((i, k, *right[:t])), i, t))
                    fixed.append([bonus * (t < k and s == right[t]) for s in range(symbols)])
        self._at, self._problem, self._position = torch.tensor(nodes).mT
        self._fixed = torch.tensor(fixed, dtype=table.dtype)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        rows = torch.zeros(self.tree.children.shape, dtype=self.table.dtype)
        here = self.table[self._problem, self._position] + self._fixed
        return rows.index_put((self._at[:, None], torch.arange(here.shape[1])[None]), here)

    def solved(self) -> float:
        """Chance of the right sequence without anything shown, a mean over problems."""
        with torch.no_grad():
            logp = self.table.log_softmax(-1)
            right = torch.from_numpy(self.answers)[..., None]
            return float(logp.gather(-1, right)[..., 0].sum(-1).exp().mean())


class Reading(Counting):
    """Samples chains; of a prompt it reads the problem's number and how many right symbols stand there first."""

    policy: Chains

    def encode(self, prompt: Prompt) -> np.ndarray:
        text = prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)
        found = _PROBLEM.search(text)
        if found is None:
            return super().encode(prompt)
        right = self.policy.answers[int(found[1])]
        shown = [int(symbol) for symbol in re.findall(r"\d+", _PROBLEM.sub("", text))]
        same = 0
        while same < min(len(shown), len(right)) and shown[same] == right[same]:
            same += 1
        return np.array([int(found[1]), same], dtype=np.int64)


class Judge:
    """Right is the whole sequence; of a wrong one it says how it should have begun."""

    def __init__(self, answers: np.ndarray, graded: bool):
        self.answers, self.graded = answers, graded

    def __call__(self, task: Task, response: str) -> Verdict:
        path, right = path_of(response) or (), tuple(self.answers[int(task.id)].tolist())
        if path == right:
            return Verdict.right()
        same = next((t for t, (a, b) in enumerate(zip(path, right, strict=False)) if a != b), len(path))
        return Verdict(self.graded * same / len(right), False, {}, text_of(right[: same + 1]))
