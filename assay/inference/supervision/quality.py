"""How good a scorer of steps is, on solutions of which something is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.errors import RunError
from assay.rewards.step_models.examples import Row, StepExample, StepPair, truth_of
from assay.statistics.intervals import Interval
from assay.statistics.judging import average_precision, located

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Quality:
    """What a scorer of steps is worth. Intervals are for 95 %, by resampling tasks.

    Attributes:
        solutions, steps: that were scored; of the steps, those with a label.
        unscored: solutions that the scorer could not score.
        share: of wrong steps, what a scorer that knows nothing has for ``pr_auc``.
        pr_auc: area under precision and recall of wrong steps; ``None`` where none is wrong.
        wrong, right, f1: see :class:`~assay.statistics.judging.Located`, of the solutions whose first wrong step is
            known; a step is said to be wrong where its chance of being right is below ``threshold``.
        ranked: share of pairs whose better solution has the higher score at its last step; ``None`` without pairs.
    """

    solutions: int
    steps: int
    unscored: int
    share: float
    pr_auc: Interval | None
    wrong: Interval | None
    right: Interval | None
    f1: Interval | None
    threshold: float
    ranked: Interval | None = None


def first_below(chances: Sequence[float], threshold: float) -> int:
    """Return the first step whose chance of being right is below ``threshold``, -1 for none."""
    return next((k for k, p in enumerate(chances) if p < threshold), -1)


def quality(scorer: object, rows: Sequence[Row], threshold: float = 0.5, cut: float = 0.0) -> Quality:
    """Measure a scorer of steps.

    Args:
        scorer: see :class:`~assay.rewards.process.step_scores.StepScorer`.
        rows: labelled solutions, and pairs.
        threshold: see :class:`Quality`.
        cut: a step is wrong where its label is not above this.

    Raises:
        RunError: there is nothing that it scored.
    """
    singles = [row for row in rows if isinstance(row, StepExample) and row.known]
    pairs = [row for row in rows if isinstance(row, StepPair)]
    chances = chances_of(scorer, singles)
    known = [(row, p) for row, p in zip(singles, chances, strict=True) if p is not None]
    ends = chances_of(scorer, [e for row in pairs for e in (row.better, row.worse)])
    compared = [
        (row.better.task.id, float(a[-1] > b[-1]) + 0.5 * (a[-1] == b[-1]))
        for row, a, b in zip(pairs, ends[::2], ends[1::2], strict=True)
        if a is not None and b is not None
    ]
    if not known and not compared:
        raise RunError("none of the labelled solutions could be scored, so nothing says what the scorer is worth")
    tasks = [row.task.id for row, _ in known]
    marks = [
        [(1 - x, label <= cut) for x, label in zip(p, row.labels, strict=False) if label is not None]
        for row, p in known
    ]
    flat = [wrong for many in marks for _, wrong in many]
    errors = [(task, truth_of(row.labels, cut), p) for task, (row, p) in zip(tasks, known, strict=True)]
    told = [(task, first_below(p, threshold), error) for task, error, p in errors if error is not None]
    where = [task for task, *_ in told]

    def area(chosen: Sequence[int]) -> float:
        scores, wrong = zip(*(pair for i in chosen for pair in marks[i]), strict=True)
        return average_precision(scores, wrong)

    def of(name: str) -> Interval | None:
        return over_tasks(
            lambda i: float(getattr(located([told[j][1] for j in i], [told[j][2] for j in i]), name)), where
        )

    return Quality(
        solutions=len(known),
        steps=len(flat),
        unscored=len(singles) - len(known),
        share=float(np.mean(flat)) if flat else float("nan"),
        pr_auc=over_tasks(area, tasks),
        wrong=of("wrong"),
        right=of("right"),
        f1=of("f1"),
        threshold=threshold,
        ranked=over_tasks(lambda i: float(np.mean([compared[j][1] for j in i])), [task for task, _ in compared]),
    )


def chances_of(scorer: object, rows: Sequence[StepExample]) -> list[list[float] | None]:
    """Return the chance of being right of each step of each solution."""
    if not rows:
        return []
    made: Any = scorer
    by_token = hasattr(made, "score_examples")
    found = made.score_examples(rows) if by_token else made.scores([(row.task, list(row.steps)) for row in rows])
    return [None if row is None else [(1 + x) / 2 for x in row] for row in found]


def over_tasks(statistic: Callable[[Sequence[int]], float], tasks: Sequence[Hashable]) -> Interval | None:
    """Return a statistic of rows with its interval by resampling their tasks; ``None`` where it is not defined.

    Args:
        statistic: of the rows with these numbers.
        tasks: of each row.
    """
    value = statistic(range(len(tasks))) if tasks else float("nan")
    if np.isnan(value):
        return None
    rows: dict[Hashable, list[int]] = {}
    for i, task in enumerate(tasks):
        rows.setdefault(task, []).append(i)
    groups, rng = list(rows.values()), np.random.default_rng(0)
    draws = [
        statistic([i for g in rng.integers(len(groups), size=len(groups)) for i in groups[g]]) for _ in range(RESAMPLES)
    ]
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))
