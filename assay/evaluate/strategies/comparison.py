"""Accuracy against cost: strategies at test time on the same tasks, under the same budgets, side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from assay.engines.base import Engine
from assay.engines.recall.remembering import Remembering
from assay.errors import RunError, UsageError
from assay.inference.base import Answer, Budget, Strategy
from assay.statistics.intervals import Interval, mean_interval, paired_interval
from assay.statistics.power import holm
from assay.types import Episode, Task
from assay.verify.base import Verifier
from assay.verify.episodes import judge_episodes

SCHEMA = "assay/strategies/1"
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy made of one task.

    Attributes:
        task_id: the task.
        passed: whether the answer is right; ``None`` where the verifier could not tell, or there was nothing to judge.
        abstained: the strategy would not answer.
        tokens, scoring, unscored: see :class:`~assay.inference.base.Answer`.
        score: of the verdict on the answer, in [0, 1]; ``None`` where it has none.
    """

    task_id: str
    passed: bool | None
    abstained: bool
    tokens: int
    scoring: int = 0
    unscored: int = 0
    score: float | None = None

    @property
    def counts(self) -> bool:
        """Whether it is known what became of the task: an answer judged, or none given."""
        return self.abstained or self.passed is not None


@dataclass(frozen=True, slots=True)
class Point:
    """One strategy under one budget."""

    strategy: str
    budget: str
    outcomes: tuple[Outcome, ...]

    def values(self) -> dict[str, float]:
        """Return 1 for a right answer and 0 for a wrong one or none, of each task that counts."""
        return {o.task_id: float(o.passed is True) for o in self.outcomes if o.counts}

    @property
    def accuracy(self) -> Interval | None:
        """Share of tasks answered right, abstentions of the strategy counting as not; 95% over tasks."""
        values = list(self.values().values())
        return mean_interval(values, bounds=(0, 1)) if values else None

    @property
    def precision(self) -> Interval | None:
        """Share of the answers that are right; 95% over the tasks that have one."""
        values = [float(o.passed is True) for o in self.outcomes if o.counts and not o.abstained]
        return mean_interval(values, bounds=(0, 1)) if values else None

    @property
    def honesty(self) -> Interval | None:
        """(right - wrong) / tasks: 1 for a right answer, -1 for a wrong one, 0 for none; 95% over tasks."""
        values = [0.0 if o.abstained else 1.0 if o.passed else -1.0 for o in self.outcomes if o.counts]
        return mean_interval(values, bounds=(-1, 1)) if values else None

    @property
    def tokens(self) -> Interval:
        """Mean tokens per task, 95% over tasks; without width where all took as many."""
        found = mean_interval([float(o.tokens) for o in self.outcomes])
        return Interval(found.value, found.value, found.value) if math.isnan(found.low) else found

    def summary(self) -> dict[str, Any]:
        """Return the point in numbers.

        ``accuracy``, ``tokens``, ``precision`` and ``honesty`` have intervals. ``answered``: share of tasks with an
        answer; ``scoring``: mean tokens of scoring; ``undecided``: tasks whose answer the verifier could not judge,
        which are left out of everything but the tokens; ``unscored``: responses that a scorer could not score, or that
        the tokens did not suffice to score; ``score``: the mean of the verdicts' scores, 0 where none was answered.
        """
        known = [o for o in self.outcomes if o.counts]
        answered = sum(not o.abstained for o in known)
        found = {k: getattr(self, k) for k in ("accuracy", "precision", "honesty")}
        shares = {k: None if interval is None else asdict(interval) for k, interval in found.items()}
        return {
            "strategy": self.strategy,
            "budget": self.budget,
            "tasks": len(known),
            "accuracy": shares["accuracy"],
            "tokens": asdict(self.tokens),
            "scoring": float(np.mean([o.scoring for o in self.outcomes])),
            "answered": answered / len(known) if known else None,
            "precision": shares["precision"],
            "honesty": shares["honesty"],
            "undecided": len(self.outcomes) - len(known),
            "unscored": sum(o.unscored for o in self.outcomes),
            "score": float(np.mean([o.score or 0.0 for o in known])) if known else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The points of several strategies on the same tasks, in the order of strategies and then of budgets.

    Attributes:
        model: what answered.
        points: see above.
    """

    model: str
    points: tuple[Point, ...]

    @property
    def strategies(self) -> list[str]:
        return list(dict.fromkeys(p.strategy for p in self.points))

    def difference(self, point: Point) -> Interval | None:
        """Return how much better a point is than the first strategy under the same budget, 95%, paired by task.

        ``None`` for the first strategy itself, and where no task counts for both.
        """
        if point.strategy == self.points[0].strategy:
            return None
        base, here = self._base(point), point.values()
        shared = [t for t in base if t in here]
        if not shared:
            return None
        return paired_interval([base[t] for t in shared], [here[t] for t in shared], bounds=(-1, 1))

    def _base(self, point: Point) -> dict[str, float]:
        """Return the values of the first strategy that a point is compared with."""
        mine = [p for p in self.points if p.strategy == self.points[0].strategy]
        return next((p for p in mine if p.budget == point.budget), mine[0]).values()

    def adjusted(self) -> list[float | None]:
        """Return the p-value of each point's difference from the first strategy; ``None`` where there is none.

        By McNemar's exact test on the tasks that only one of the two gets right, with Holm's correction over all points
        that are compared: where no strategy is better than the first, some p-value is below .05 in at most 5% of
        comparisons, however many strategies and budgets they have.
        """
        from assay.statistics.agreement import Table, mcnemar

        out: list[float | None] = [None] * len(self.points)
        raw = {}
        for k, point in enumerate(self.points):
            if point.strategy != self.points[0].strategy:
                base, here = self._base(point), point.values()
                if pairs := [(base[t] == 1, here[t] == 1) for t in base if t in here]:
                    found = Table.count(pairs)
                    raw[k] = mcnemar(found.first, found.second)
        for k, p in zip(raw, holm(list(raw.values())).tolist(), strict=True):
            out[k] = p
        return out

    def rows(self) -> list[dict[str, Any]]:
        """Return each point's numbers, and ``difference`` from the first strategy, with ``p`` and ``verdict``.

        The verdict is ``better`` or ``worse`` where ``p``, see :meth:`adjusted`, is below .05 and the interval of the
        difference, which is for this one alone, leaves out zero; else ``not told apart``.
        """
        out = []
        for point, p in zip(self.points, self.adjusted(), strict=True):
            found = self.difference(point)
            verdict = None
            if found is not None and p is not None:
                told = p < LEVEL and (found.low > 0 or found.high < 0)
                verdict = "not told apart" if not told else "better" if found.low > 0 else "worse"
            out.append({**point.summary(), "difference": found and asdict(found), "p": p, "verdict": verdict})
        return out

    def to_json(self) -> str:
        """Return all of it, the outcome of every task included."""
        rows = [
            {**row, "outcomes": [asdict(o) for o in point.outcomes]}
            for row, point in zip(self.rows(), self.points, strict=True)
        ]
        return json.dumps({"schema": SCHEMA, "model": self.model, "points": rows}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what :meth:`to_json` wrote; raise RunError for anything else."""
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise KeyError(data["schema"])
            points = tuple(
                Point(p["strategy"], p["budget"], tuple(Outcome(**o) for o in p["outcomes"])) for p in data["points"]
            )
            return cls(data["model"], points)
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"this is no comparison of strategies ({SCHEMA}): {error}") from None


class Kept(Protocol):
    """Outcomes by part of the tasks, e.g. :class:`~assay.evaluate.strategies.folder.StrategyFolder`."""

    def load(self, start: int) -> list[list[Outcome]] | None:
        """Return what is known of the tasks from number ``start`` on, a list per strategy and budget, in order."""
        ...

    def store(self, start: int, outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Keep it."""
        ...


def compare_strategies(
    tasks: Sequence[Task],
    engine: Engine,
    verifier: Verifier,
    strategies: Mapping[str, Strategy],
    budgets: Sequence[Budget | int | str],
    *,
    seed: int = 0,
    model: str = "",
    chunk: int = 16,
    progress: Callable[[int, int], None] | None = None,
    kept: Kept | None = None,
) -> Comparison:
    """Answer every task by every strategy under every budget, judge the answers and count the tokens.

    All strategies and budgets draw from generators of the same seed and share what they sample in common, so that they
    are compared on the same luck. A strategy that has ``once = True`` does not depend on the budget and is run under
    the first one alone.

    Args:
        tasks: with distinct ids.
        engine: of the model that answers.
        verifier: judges the final answers; it costs nothing here, since it is what is measured with.
        strategies: by the name to be shown; the first is what the others are compared with.
        budgets: see :meth:`~assay.inference.base.Budget.of`.
        seed: of all draws.
        model: its name, for people.
        chunk: tasks at a time.
        progress: called as ``progress(done, in all)``.
        kept: where outcomes are stored, ``chunk`` tasks at a time; what is there already is not made again.

    Raises:
        UsageError: nothing to compare, or two tasks of the same id.
        RunError: a strategy gave another number of answers than there were tasks.
    """
    spending = list(dict.fromkeys(Budget.of(b) for b in budgets))
    if not tasks or not strategies or not spending or chunk < 1:
        raise UsageError("a comparison of strategies needs at least one task, one strategy and one budget")
    if len({t.id for t in tasks}) < len(tasks):
        raise UsageError("two tasks have the same id; ids must be distinct")
    plan = [
        (name, budget)
        for name, strategy in strategies.items()
        for budget in (spending[:1] if getattr(strategy, "once", False) else spending)
    ]
    # The largest first: what a smaller budget samples is then a part of what is remembered.
    order = sorted(plan, key=lambda job: (-(job[1].samples or 0), -(job[1].tokens or 0)))
    outcomes: dict[tuple[str, Budget], list[Outcome]] = {job: [] for job in plan}
    shared, done = Remembering(engine), 0
    for start in range(0, len(tasks), chunk):
        part = list(tasks[start : start + chunk])
        known = None if kept is None else kept.load(start)
        if known is not None:
            done += len(plan)
            for job, found in zip(plan, known, strict=True):
                outcomes[job] += found
            continue
        for name, budget in order:
            answers = strategies[name](part, shared, budget, np.random.default_rng([seed, start]))
            if len(answers) != len(part):
                raise RunError(f"strategy {name} gave {len(answers)} answers to {len(part)} tasks")
            outcomes[name, budget] += _judge(part, answers, verifier)
            done += 1
            if progress is not None:
                progress(done, len(plan) * -(-len(tasks) // chunk))
        shared.forget()
        if kept is not None:
            kept.store(start, [outcomes[job][start:] for job in plan])
    points = tuple(Point(name, str(budget), tuple(outcomes[name, budget])) for name, budget in plan)
    return Comparison(model, points)


def _judge(tasks: Sequence[Task], answers: Sequence[Answer], verifier: Verifier) -> list[Outcome]:
    """Return what became of each task."""
    given = [(t, a) for t, a in zip(tasks, answers, strict=True) if a.text is not None]
    verdicts = iter(judge_episodes(verifier, [(t, _final(a)) for t, a in given]))
    out = []
    for task, answer in zip(tasks, answers, strict=True):
        verdict = None if answer.text is None else next(verdicts)
        passed = None if verdict is None else verdict.passed
        score = None if verdict is None or passed is None else verdict.score
        missed = int(answer.meta.get("unscored", 0))
        out.append(Outcome(task.id, passed, verdict is None, answer.tokens, answer.scoring, missed, score))
    return out


def _final(answer: Answer) -> Episode:
    """Return the response that the answer is, or one made of its text."""
    found = next((e for e in answer.episodes if e.text == answer.text), None)
    none = np.zeros(0, dtype=np.int64)
    return found or Episode(none, none, none.astype(bool), None, answer.text or "", "eos")
