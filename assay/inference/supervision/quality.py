"""How good a scorer of steps is, on solutions of which something is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from assay.errors import RunError
from assay.inference.scoring.scorers import Reduce, reduced
from assay.inference.supervision.one_of_many import OneOfMany, one_of_many
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
        among: of solutions that are better than several others, how often one is told from all of them, by how the
            scores of its steps become one number; a solution of one step has one in any case, ``last``.
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
    among: dict[Reduce, OneOfMany] = field(default_factory=dict)


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
        among=among(pairs, ends),
    )


def among(pairs: Sequence[StepPair], ends: Sequence[list[float] | None]) -> dict[Reduce, OneOfMany]:
    """Return how often solutions are told from all that they are better than, where those are several.

    Args:
        pairs: those of one better solution belong together.
        ends: chances of the steps of each pair's better and worse solution, in turn. A solution that is not scored, or
            is put against one that is not, is left out.
    """
    sets: dict[Hashable, list[list[float] | None]] = {}
    for pair, better, worse in zip(pairs, ends[::2], ends[1::2], strict=True):
        sets.setdefault((pair.better.task.id, pair.better.steps), [better]).append(worse)
    rows = [
        [steps for steps in found if steps is not None]
        for found in sets.values()
        if len(found) > 2 and None not in found
    ]
    several = any(len(steps) > 1 for row in rows for steps in row)
    hows: tuple[Reduce, ...] = (get_args(Reduce) if several else ("last",)) if rows else ()
    scores = {how: [[reduced(steps, how) for steps in row] for row in rows] for how in hows}
    return {how: one_of_many([(row[:1], row[1:]) for row in found]) for how, found in scores.items()}


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
