"""The worth of a judge's critiques: by a person's, where there is one, and else by a model that learns from these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.signals.base import Models
from assay.signals.judges.core_points import CorePoints
from assay.signals.judges.scalar_head import ScalarHead, clipped_step
from assay.types import Task
from assay.verify.pair_critique import critique_of

SHOWN = "{question}\n\nA critique of the answers:\n"
TOGETHER = 16
"""Critiques of a pass."""


@part("signal", "critique_reward")
class CritiqueReward:
    """Signal ``critique_reward`` ``(N,)``: how good the critique of each response is, in [0, 1].

    Of a task with ``meta["critique"]``, what a person wrote of the pair, or ``meta["points"]``, its core points, it is
    F1 of :class:`~assay.signals.judges.core_points.CorePoints`, which is left as signal ``critique_f1`` too; NaN where
    the matcher failed. Of other tasks it is sigmoid(r(task, critique)) of MetaRM, a copy of the policy with a number at
    its end, 1/2 at first. After the policy's update it takes a step by the squared error on the critiques of this batch
    whose F1 is known, and so follows the policy. A response without a critique is worth 0.

    Args:
        matcher: an engine, or the specification of one; a run whose tasks have critiques is refused without.
        lr: of MetaRM; ten times the policy's highest if left out.
        learns: ``False`` keeps it as it is after the cold start.
        cold_start: a file of rows with ``question`` (a whole task of judging), ``critique`` and ``score`` in [0, 1],
            from which MetaRM learns before the run.
        epochs: over that file.
        model: what computes r, in place of a copy of the policy with a head: called with pairs of task and text.
        max_grad_norm: L2 norm that gradients are scaled down to.
        max_tokens: of a matcher's reply.

    Raises:
        UsageError: numbers out of range, or a cold start's row of another form.

    Source: RM-NLHF (arXiv 2601.07349); squared error, learning rate and form of MetaRM are choices.
    """

    name = "critique_reward"
    trains_model = True

    def __init__(
        self,
        matcher: Any = None,
        lr: float | None = None,
        learns: bool = True,
        cold_start: Path | None = None,
        epochs: int = 3,
        model: Any = None,
        max_grad_norm: float = 1.0,
        max_tokens: int = 1024,
    ):
        if epochs < 1 or (lr is not None and lr <= 0) or max_grad_norm <= 0:
            raise UsageError(
                f"signal 'critique_reward': needs epochs >= 1, lr and max_grad_norm above 0, not {epochs}, {lr} and "
                f"{max_grad_norm:g}"
            )
        self.points = None if matcher is None else CorePoints(matcher, max_tokens)
        self.lr, self.learns, self.epochs, self.given, self.max_grad_norm = lr, learns, epochs, model, max_grad_norm
        self.examples = [] if cold_start is None else scored(Path(cold_start))

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for tasks with critiques and nobody to match them."""
        if self.points is None and any(human(task) for task in tasks):
            raise UsageError(
                "signal 'critique_reward': tasks have critiques, and nothing matches others with them; give a matcher"
            )

    def start(self, models: Models) -> None:
        """Make MetaRM and its optimiser; learn what the cold start has."""
        self.model: Any = ScalarHead(models, SHOWN) if self.given is None else self.given
        self.optimizer = models.optimizer(self.model.parameters(), self.lr or 10 * models.lr)
        for _ in range(self.epochs if self.examples else 0):
            order = models.rng.permutation(len(self.examples)).tolist()
            for start in range(0, len(order), TOGETHER):
                self.step([self.examples[i] for i in order[start : start + TOGETHER]])

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N"]:
        texts = [critique_of(e.text) for e in batch.episodes]
        told = [i for i, task in enumerate(batch.tasks) if human(task)]
        known = torch.full((len(batch),), torch.nan, dtype=batch.rewards.dtype)
        for i, value in zip(told, models.once(lambda: self.matched(batch, told, texts)), strict=True):
            known[i] = torch.nan if value is None else value
        batch.signals["critique_f1"] = known
        out = known.clone()
        rest = [i for i in range(len(batch)) if i not in {*told}]
        out[rest] = 0.0
        asked = [i for i in rest if texts[i].strip()]
        for start in range(0, len(asked), TOGETHER):
            rows = asked[start : start + TOGETHER]
            with torch.no_grad():
                out[rows] = torch.sigmoid(self.model([(batch.tasks[i], texts[i]) for i in rows])).to(out)
        return out

    def matched(self, batch: Batch, rows: Sequence[int], texts: Sequence[str]) -> list[float | None]:
        """Return F1 of the critiques of rows whose tasks have a person's."""
        if not rows:
            return []
        self.check_tasks([batch.tasks[i] for i in rows])
        assert self.points is not None
        given = [human(batch.tasks[i]) for i in rows]
        found = iter(self.points.points([x for x in given if isinstance(x, str)]))
        points = [next(found) if isinstance(x, str) else x for x in given]
        pairs = [(some, texts[i]) for some, i in zip(points, rows, strict=True) if some]
        values = iter(self.points.f1(pairs))
        return [next(values) if some else None for some in points]

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Take a step on what is known of this batch's critiques; metrics ``meta/loss``, before it, and ``meta/known``,
        the share of responses."""
        known = batch.signals["critique_f1"]
        texts = [critique_of(e.text) for e in batch.episodes]
        rows = [i for i in (~known.isnan()).nonzero()[:, 0].tolist() if texts[i].strip()]
        metrics = {"meta/known": len(rows) / len(batch)}
        if rows and self.learns:
            metrics["meta/loss"] = self.step([(batch.tasks[i], texts[i], float(known[i])) for i in rows])
        return metrics

    def step(self, examples: Sequence[tuple[Task, str, float]]) -> float:
        """Take a step by the mean squared error of sigmoid(r) on critiques; return what it was."""
        self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for start in range(0, len(examples), TOGETHER):
            some = examples[start : start + TOGETHER]
            r = self.model([(task, text) for task, text, _ in some])
            wanted = torch.from_numpy(np.array([value for *_, value in some])).to(r)
            loss = (torch.sigmoid(r) - wanted).square().sum() / len(examples)
            loss.backward()
            total += loss.item()
        clipped_step(self.optimizer, self.max_grad_norm)
        return total

    def state_dict(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def human(task: Task) -> str | list[str] | None:
    """Return what a person said of a task's pair: core points, or a critique; ``None`` where there is neither."""
    points = task.meta.get("points")
    return [str(x) for x in points] if points else task.meta.get("critique") or None


def scored(path: Path) -> list[tuple[Task, str, float]]:
    """Return the critiques of a file with their scores.

    Raises:
        UsageError: a row lacks a field, or its score is not in [0, 1].
    """
    out = []
    for where, row in read_rows(path):
        try:
            task, text, score = Task(str(where), str(row["question"])), str(row["critique"]), float(row["score"])
        except (KeyError, TypeError, ValueError):
            score = -1.0
        if not 0 <= score <= 1:
            raise UsageError(f"{where}: a row of MetaRM's cold start has question, critique and score in [0, 1]")
        out.append((task, text, score))
    return out
