"""Watches a run for signs that its reward is being gamed, said once, with rollouts that show it; and for idleness."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.records.evaluation import Evaluation, difference
from assay.records.rollout_table import rollout_columns
from assay.records.sign import Sign
from assay.training.watching.idle import Idle
from assay.training.watching.metrics import hollow, repetition
from assay.training.watching.signs import TRACKED, Found, held_out, in_training

EXAMPLES = 3
"""Rollouts kept for a sign."""
LONGEST_EXAMPLE = 4000
"""Characters kept of an example's response."""


@dataclass(slots=True)
class Watch:
    """Signs of a run so far, and what they are looked for in.

    Everything here is a function of the steps and evaluations seen, and in the checkpoint: a resumed run says what the
    uninterrupted one would have said.
    """

    signs: list[Sign] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in TRACKED})
    start: Evaluation | None = None
    """Of the policy that RL began with; the run stores it, so it is not in the state."""
    hollow: list[dict[str, Any]] = field(default_factory=list)
    """Best rewarded of the last step without a better verdict than their siblings'."""
    idle: Idle = field(default_factory=Idle)

    def step(self, step: int, batch: Batch, metrics: dict[str, float]) -> list[Sign]:
        """Take in a step's valued batch and its metrics; return the signs that appear with it."""
        if not len(batch):
            return []
        self.steps.append(step)
        for name, values in self.history.items():
            values.append(metrics.get(name, float("nan")))
        found = in_training(self.history, self.steps, [sign.kind for sign in self.signs])
        wins = hollow(batch)[1]
        self.hollow = _rows(step, batch, np.where(wins, batch.rewards.numpy(), -np.inf))
        return self._add(step, [(f, _examples(f.kind, step, batch) or self.hollow) for f in found])

    def begin(self) -> None:
        """Compare from here on: another stage has other tasks, lengths and rewards. What was said stays said."""
        self.steps, self.history = [], {name: [] for name in TRACKED}
        self.idle = Idle()

    def evaluated(self, evaluation: Evaluation) -> list[Sign]:
        """Take in an evaluation on held-out tasks; return the sign that appears with it, if any."""
        if evaluation.step == 0 and evaluation.label == "before":
            self.start = evaluation
        if self.start is None or evaluation is self.start or any(sign.kind == "held out" for sign in self.signs):
            return []
        try:
            found = difference(self.start, evaluation)
        except UsageError:  # nothing was judged in both
            return []
        gain = found.interval
        sign = held_out(self.history, self.steps, found.before, found.after, gain.value, gain.low, gain.high)
        return self._add(evaluation.step, [(sign, self.hollow)] if sign else [])

    def _add(self, step: int, found: list[tuple[Found, list[dict[str, Any]]]]) -> list[Sign]:
        new = [Sign(f.kind, step, f.since, f.text, f.numbers, examples) for f, examples in found]
        self.signs += new
        return new

    def state_dict(self) -> dict[str, Any]:
        return {
            "signs": [asdict(sign) for sign in self.signs],
            "steps": list(self.steps),
            "history": {name: list(values) for name, values in self.history.items()},
            "hollow": self.hollow,
            "idle": self.idle.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.signs = [Sign(**sign) for sign in state["signs"]]
        self.steps, self.hollow = list(state["steps"]), state["hollow"]
        self.history = {name: list(state["history"][name]) for name in TRACKED}
        self.idle.load_state_dict(state["idle"])


def _examples(kind: str, step: int, batch: Batch) -> list[dict[str, Any]]:
    """Return the rollouts that show a sign best; none where those that win without a better verdict do."""
    if kind == "length":
        return _rows(step, batch, batch.lengths.numpy().astype(np.float64))
    if kind == "repetition":
        return _rows(step, batch, np.array([repetition(e.tokens[e.mask]) for e in batch.episodes]))
    if kind == "entropy":
        counts = Counter(e.text for e in batch.episodes)
        return _rows(step, batch, np.array([counts[e.text] for e in batch.episodes], dtype=np.float64))
    return []


def _rows(step: int, batch: Batch, order: np.ndarray) -> list[dict[str, Any]]:
    """Return the rows with the greatest finite ``order``, no text twice, of as many tasks as there are."""
    best = [int(i) for i in np.argsort(-order, kind="stable") if np.isfinite(order[i])]
    distinct = list({batch.episodes[i].text: i for i in reversed(best)}.values())[::-1]
    by_task = list({batch.tasks[i].id: i for i in reversed(distinct)}.values())[::-1]
    picked = [*by_task, *(i for i in distinct if i not in by_task)][:EXAMPLES]
    if not picked:
        return []
    chosen = batch.rows(torch.tensor(picked))
    columns = rollout_columns(step, chosen)
    rows = [{name: values[i] for name, values in columns.items()} for i in range(len(chosen))]
    return [{**row, "response": _cut(row["response"]), "prompt": _cut(row["prompt"])} for row in rows]


def _cut(text: str) -> str:
    if len(text) <= LONGEST_EXAMPLE:
        return text
    return f"{text[: LONGEST_EXAMPLE // 2]}\n[...]\n{text[-LONGEST_EXAMPLE // 2 :]}"
