"""One answer among hundreds, and the same question with fewer to choose from: the same weights answer all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Questions with one right answer among ``sizes[-1]``. A variant of a question shows some of the answers alone, the
    right one among them, each variant those of the one before; a logit for each answer serves all variants. That of
    the right one begins so low that the question itself is hardly ever solved in 64 tries.

    Args:
        questions: each with logits of its own, asked in turn.
        sizes: answers of the variants, ascending; the last is the question itself.
        spread: standard deviation of the logits at the start.
        below: by which the logit of the right answer begins lower than those of the others.
        steps, group, lr, optimizer: of training; every question is asked in every step.
    """

    questions: int = 1
    sizes: Sequence[int] = (4, 10, 40, 400)
    spread: float = 0.3
    below: float = 3.0
    steps: int = 60
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``solved``, the chance of the right answer to the questions themselves after training, ``area``, its
        mean over training, ``start``, and ``rollouts``."""
        policy = self.policy(seed)
        engine, curve, start = Counting(policy), list[float](), policy.solved()
        tasks = []
        for q in range(self.questions):
            rungs = [{"variant": f"of {size}", "prompt": f"{q}/{v}"} for v, size in enumerate(self.sizes[:-1])]
            tasks.append(Task(str(q), f"{q}/{len(rungs)}", kind="tabular", meta={"variants": rungs}))
        training = Training(self.steps, self.questions, self.group, self.lr, self.optimizer)
        watch = lambda *_: curve.append(policy.solved())  # noqa: E731
        train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, watch, engine)
        return {"solved": curve[-1], "area": float(np.mean(curve)), "start": start, "rollouts": engine.sampled}

    def policy(self, seed: int) -> Nested:
        """Return the policy at the start."""
        rng = np.random.default_rng([seed, 17])
        order = np.stack([rng.permutation(self.sizes[-1]) for _ in range(self.questions)])
        logits = jitter(self.spread, seed, *order.shape)
        logits[np.arange(self.questions), order[:, 0]] -= self.below
        return Nested(order, self.sizes, torch.from_numpy(logits))


class Nested(TabularPolicy):
    """A tabular policy whose logits for the answers of a variant are those of the same answers to the question.

    Args:
        order: ``(questions, answers)``, answers as variants take them in; the first is the right one.
        sizes: answers of each variant.
        weights: ``(questions, answers)`` logits at first.
    """

    def __init__(self, order: np.ndarray, sizes: Sequence[int], weights: Tensor):
        # The right answer stands at a place of its own in each variant, so that no place is always right.
        shown = [[np.sort(row[:size]) for size in sizes] for row in order]
        right = [[int(np.flatnonzero(a == row[0])[0]) for a in of] for row, of in zip(order, shown, strict=True)]
        self.tree = Tree.of(
            [
                [[float(k == r) for k in range(len(a))] for a, r in zip(of, places, strict=True)]
                for of, places in zip(shown, right, strict=True)
            ]
        )
        self.theta = torch.nn.Parameter(weights.clone())
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        nodes = [self.tree.node([q, v]) for q, of in enumerate(shown) for v, a in enumerate(of) for _ in a]
        self.rows = torch.tensor(nodes)
        self.columns = torch.tensor([k for of in shown for a in of for k in range(len(a))])
        self.taken = torch.tensor([q * order.shape[1] + int(x) for q, of in enumerate(shown) for a in of for x in a])
        self.gold = torch.from_numpy(order[:, 0].copy())

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = torch.zeros(self.tree.children.shape, dtype=self.theta.dtype)
        return table.index_put((self.rows, self.columns), self.theta.flatten()[self.taken])

    def solved(self) -> float:
        """Mean chance of the right answer to the questions themselves."""
        with torch.no_grad():
            return float(self.theta.softmax(-1)[torch.arange(len(self.gold)), self.gold].mean())

    def twin(self) -> Nested:
        return deepcopy(self)
