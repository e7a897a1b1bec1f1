"""Responses with features and a true worth, people who rate them and prefer one of two, and scorers linear in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.inference.supervision.train import make_method
from assay.rewards.step_models.examples import Row, StepExample, StepPair
from assay.rewards.step_models.people import BEST, agreed
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Worth is linear in the features and saturates where the scorer cannot: v = u x + bend (u x)^3.

    Of each pair, ``people`` see the difference in worth with noise of their own, and say how strong it is by the
    ``cuts``; what they agree on is kept. The first response of each pair is rated, too. An arm names a ``method`` of
    ``assay train-prm`` with ``options``.

    Args:
        pairs, fresh: that are learned from, and on which the scorer is measured.
        width: features.
        bend: see above.
        people, noise: of a pair; standard deviation of what each sees, the worth's being about 1.
        cuts: below the first there is no preference, above the last it is the strongest.
        lr, epochs: of the training.
    """

    pairs: int = 60
    fresh: int = 2000
    width: int = 16
    bend: float = 0.1
    people: int = 3
    noise: float = 1.0
    cuts: tuple[float, float, float] = (0.2, 0.9, 1.8)
    lr: float = 0.01
    epochs: int = 20

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what the scorer is worth.

        ``accuracy``: fresh pairs whose better response it scores higher; ``close``, ``far``: of the third of them that
        are nearest, and furthest apart; ``rows``: pairs that people agreed on.
        """
        rng = np.random.default_rng([seed, 31])
        u = rng.standard_normal(self.width)
        u /= np.linalg.norm(u)
        features = rng.standard_normal((self.pairs, 2, self.width))
        worth = self.worth(features @ u)
        seen = (worth[:, 1] - worth[:, 0])[:, None] + self.noise * rng.standard_normal((self.pairs, self.people))
        said = (np.sign(seen) * np.digitize(np.abs(seen), self.cuts)).astype(int)
        ratings = np.clip(np.round(BEST / 2 + worth[:, 0] + self.noise * rng.standard_normal(self.pairs)), 0, BEST)
        table = torch.from_numpy(features.reshape(-1, self.width)).float()
        rows: list[Row] = [
            StepExample(Task(str(i), ""), (str(2 * i),), (float(r) / BEST,)) for i, r in enumerate(ratings)
        ]
        for i, strengths in enumerate(said.tolist()):
            if strength := agreed(strengths):
                order = (2 * i, 2 * i + 1)[:: 1 if strength < 0 else -1]
                better, worse = (StepExample(Task(str(i), ""), (str(k),)) for k in order)
                rows.append(StepPair(better, worse, 0, abs(strength)))
        method = make_method(str(arm["method"]), **arm.get("options", {}))
        model = Linear(table)
        training = replace(method.training, lr=self.lr, epochs=self.epochs, weight_decay=0.0)
        training.fit(model, rows, np.random.default_rng(seed))
        fresh = np.random.default_rng([seed, 37]).standard_normal((self.fresh, 2, self.width))
        gap = np.diff(self.worth(fresh @ u), axis=1)[:, 0]
        scored = np.diff(fresh @ model.weight.detach().numpy().astype(float), axis=1)[:, 0]
        right = np.sign(gap) == np.sign(scored)
        nearest, third = np.argsort(np.abs(gap)), self.fresh // 3
        return {
            "accuracy": float(right.mean()),
            "close": float(right[nearest[:third]].mean()),
            "far": float(right[nearest[-third:]].mean()),
            "rows": float(len(rows) - self.pairs),
        }

    def worth(self, x: np.ndarray) -> np.ndarray:
        return x + self.bend * x**3


class Linear:
    """Scores a response, called by its number, by its features.

    Args:
        table: ``(responses, width)``.
    """

    def __init__(self, table: Tensor):
        self.table, self.weight = table, torch.zeros(table.shape[1], requires_grad=True)

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        x = self.table[[int(row.steps[-1]) for row in rows]]
        return [(z[None], h[None]) for z, h in zip(x @ self.weight, x, strict=True)]

    def train(self, learning: bool) -> None:
        pass

    def views(self, rows: Sequence[StepExample]) -> list[list[Tensor]]:
        return [[z for z, _ in self.read(rows)]]

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        return [{"params": [self.weight], "lr": lr}]

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        return [list(range(len(rows)))] if rows else []

    def save(self, folder: Path) -> None:
        raise NotImplementedError("a scorer of the lab is not kept")
