"""Models and harnesses whose effects on the outcome are known, because they were planted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.evaluate.harnesses import HarnessComparison, compare_harnesses
from assay.statistics.two_way import TwoWay, two_way
from assay.types import Ask, Episode, Group, Task, Verdict

CHECKS = 4
"""Of each task, of equal weight."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``size`` models under as many harnesses; a check of a task passes with a probability that is a sum of effects.

        p = 1/2 + model + harness + interaction + task

    Effects are drawn, centred and scaled: each kind has the root mean square of its number here. An arm is
    ``{"design": "crossed"}``, every model under every harness on ``tasks`` tasks, or ``{"design": "own"}``, every model
    under a harness of its own alone, on ``size * tasks`` tasks, which is as many runs.

    Args:
        size: 2 or more.
        tasks: see above.
        models, harnesses, interaction, difficulty: root mean squares of the planted effects.

    Raises:
        UsageError: a number out of range, or effects that leave no probabilities.
    """

    size: int = 3
    tasks: int = 40
    models: float = 0.06
    harnesses: float = 0.1
    interaction: float = 0.05
    difficulty: float = 0.08

    def __post_init__(self) -> None:
        effects = (self.models, self.harnesses, self.interaction, self.difficulty)
        if self.size < 2 or self.tasks < 2 or min(effects) < 0 or sum(effects) > 0.3:
            raise UsageError(f"setting 'harness_runs': {asdict(self)} is out of range")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return how near what was found is to what was planted.

        ``model``: 1 - mean absolute error of the models' effects; of the crossed design also ``harness`` and
        ``interaction``, and ``covered``, the share of the planted effects of all three kinds that their intervals hold.
        ``rollouts``: runs.
        """
        planted = self.planted(seed)
        crossed = arm["design"] == "crossed"
        count = self.tasks if crossed else self.size * self.tasks
        tasks = [Task(f"t{i}", "") for i in range(count)]
        drawn = np.random.default_rng([seed, 2]).normal(size=count)
        chances = _Chances(planted, dict(zip([t.id for t in tasks], self.difficulty * drawn, strict=True)))
        harnesses: dict[str, Any] = {
            f"h{j}": chances.under(j, np.random.default_rng([seed, 3, j])) for j in range(self.size)
        }
        cells = []
        for i in range(self.size):
            mine = harnesses if crossed else {f"h{i}": harnesses[f"h{i}"]}
            opened: dict[str, Any] = {f"m{i}": partial(_Model, i)}
            cells.append(compare_harnesses(tasks, opened, mine, seed=seed))
        runs = tuple(run for found in cells for run in found.runs)
        if not crossed:
            means = np.array([np.mean([r.outcome for r in found.runs]) for found in cells])
            return {"model": 1 - _error(means - means.mean(), planted.rows), "rollouts": float(len(runs))}
        found = HarnessComparison(tuple(f"m{i}" for i in range(self.size)), tuple(harnesses), runs).effects("outcome")
        assert found is not None
        intervals = [*found.rows, *found.columns, *(i for row in found.interaction for i in row)]
        true = [*planted.rows, *planted.columns, *planted.interaction.ravel()]
        return {
            "model": 1 - _error(found.found.rows, planted.rows),
            "harness": 1 - _error(found.found.columns, planted.columns),
            "interaction": 1 - _error(found.found.interaction, planted.interaction),
            "covered": float(np.mean([i.low <= value <= i.high for i, value in zip(intervals, true, strict=True)])),
            "rollouts": float(len(runs)),
        }

    def planted(self, seed: int) -> TwoWay:
        """Return the table of probabilities without tasks, taken apart."""
        rng = np.random.default_rng([seed, 1])
        parts = two_way(rng.normal(size=(self.size, self.size)))
        rows, columns = (
            scale * effect / np.sqrt(np.mean(effect**2))
            for scale, effect in ((self.models, parts.rows), (self.harnesses, parts.columns))
        )
        rest = self.interaction * parts.interaction / np.sqrt(np.mean(parts.interaction**2))
        return two_way(0.5 + rows[:, None] + columns + rest)


class _Model:
    """Stands for a model: what it can do is planted in the harness."""

    def __init__(self, number: int):
        self.number = number


@dataclass(frozen=True, slots=True)
class _Chances:
    planted: TwoWay
    tasks: Mapping[str, float]

    def under(self, harness: int, rng: np.random.Generator) -> _Under:
        return _Under(self, harness, rng)


class _Under:
    """Plays a task by chance, as a model under a harness does it."""

    def __init__(self, chances: _Chances, harness: int, rng: np.random.Generator):
        self.chances, self.harness, self.rng = chances, harness, rng

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        planted, model = self.chances.planted, engine.number  # type: ignore[attr-defined]
        known = planted.grand + planted.rows[model] + planted.columns[self.harness]
        known += planted.interaction[model, self.harness]
        none, took = (
            np.zeros(0, dtype=np.int64),
            dict.fromkeys(("requests", "refused", "read", "written", "seconds"), 0),
        )
        groups = []
        for ask in asks:
            chance = float(np.clip(known + self.chances.tasks[ask.task.id], 0, 1))
            score = int(self.rng.binomial(CHECKS, chance)) / CHECKS
            episode = Episode(none, none, none.astype(bool), None, "", "eos", meta=took)
            groups.append(Group(ask, (episode,), (Verdict(score, score == 1),)))
        return groups


def _error(found: Any, planted: Any) -> float:
    return float(np.mean(np.abs(np.asarray(found) - np.asarray(planted))))
