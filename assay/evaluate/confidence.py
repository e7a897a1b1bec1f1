"""How far the confidences of judged samples can be believed, with intervals that draw whole tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from assay.records.sample import Sample
from assay.statistics.calibration import auroc, brier, selective
from assay.statistics.calibration_interval import calibration_interval
from assay.statistics.intervals import (
    Interval,
    degrees_with,
    ratio_interval,
    score_interval,
    signed_ratio_interval,
    trials_of,
)

BARS = (0.5, 0.75, 0.9)
"""Confidences from which on an answer is given, for the accuracy with abstention."""

ANSWERED = (0.5, 0.8)
"""Shares of the samples, the most confident, for the accuracy of those."""

SPARE = 0.75
"""Trials' worth of variance that is added to an AUROC's where few tasks have a sample of the rarer kind."""

Statistics = Callable[[NDArray[np.float64], NDArray[np.float64]], Sequence[float]]


def confidence_measures(rows: Sequence[Sequence[Sample]]) -> Iterator[tuple[str, Interval, int]]:
    """Yield name, interval and number of tasks of what the samples' confidences are worth.

    - ``auroc``: of right against wrong; left out where all are one. ``aurc``: mean risk over coverage.
    - ``accuracy@c``: accuracy of the share c of samples that are most confident.
    - where all confidences are in [0, 1]: ``ece`` (15 bins), ``brier``, ``overconfidence`` (mean confidence less
      accuracy), and ``abstaining@t``: mean of 1 for a right answer, -t / (1 - t) for a wrong one and 0 where the
      confidence is below t, which to answer only when sure to t makes largest.

    Samples that the verifier or the scorer abstained on are left out.
    """
    known = [[s for s in row if s.passed is not None and s.confidence is not None] for row in rows]
    known = [row for row in known if row]
    if not known:
        return
    p = [np.array([s.confidence for s in row], dtype=np.float64) for row in known]
    y = [np.array([s.passed for s in row], dtype=np.float64) for row in known]
    right, many = np.concatenate(y), len(known)
    every = np.concatenate(p)
    names = ["aurc", *(f"accuracy@{share:.0%}" for share in ANSWERED)]
    probable = bool(every.min() >= 0 and every.max() <= 1)

    def statistics(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[float]:
        curve = selective(a, b)
        last = [max(0, int(np.ceil(share * len(a) - 1e-9)) - 1) for share in ANSWERED]
        return [curve.area, *(float(curve.accuracy[i]) for i in last)]

    if 0 < right.sum() < len(right):
        yield "auroc", auroc_interval(p, y), many
    for name, found in zip(names, clustered_intervals(p, y, statistics), strict=True):
        yield name, found, many
    if not probable:
        return
    yield "ece", calibration_interval(p, y), many
    size = [len(a) for a in p]
    yield "brier", ratio_interval([brier(a, b) * len(a) for a, b in zip(p, y, strict=True)], size, bounds=(0, 1)), many
    yield (
        "overconfidence",
        ratio_interval([(a - b).sum() for a, b in zip(p, y, strict=True)], size, bounds=(-1, 1)),
        many,
    )
    for bar in BARS:
        penalty = bar / (1 - bar)
        hits = [b[a >= bar].sum() for a, b in zip(p, y, strict=True)]
        lost = [penalty * (1 - b[a >= bar]).sum() for a, b in zip(p, y, strict=True)]
        yield f"abstaining@{bar:g}", signed_ratio_interval(hits, lost, size, bounds=(-penalty, 1)), many


def auroc_interval(
    p: Sequence[NDArray[np.float64]], y: Sequence[NDArray[np.float64]], confidence: float = 0.95
) -> Interval:
    """AUROC of all confidences and outcomes, with its interval over tasks.

    With V_i the share of wrong samples that a right sample i beats (the share of right ones that beat it, of a wrong
    one; ties count half), the variance is that of DeLong, DeLong and Clarke-Pearson (1988) for samples that come in
    clusters, Obuchowski's (1997): sums of V_i - AUROC over the right and over the wrong samples of each task, squared
    and multiplied. What there is to learn it from is the tasks that have a sample of the rarer kind: with G of them
    there are G - 1 degrees of freedom, and :data:`SPARE` AUROC (1 - AUROC) / (G (G - 1)) is added, since the estimate
    and its variance go astray together where the tasks are few; the sum has more degrees, as far as it was not
    estimated (:func:`~assay.statistics.intervals.degrees_with`). The ends are those of
    :func:`~assay.statistics.intervals.score_interval`, for an AUROC of 0 or 1 of G trials (Wilson's); 0 and 1 if all
    samples of a kind are from one task.

    Args:
        p, y: confidences and outcomes of each task; samples of both kinds among them.
        confidence: coverage.
    """
    from scipy import stats

    every, right = np.concatenate(p), np.concatenate(y) > 0
    task = np.repeat(np.arange(len(p)), [len(row) for row in p])
    value, ranks = auroc(every, right), stats.rankdata(every)
    sums, groups = [], []
    for mine, sign in ((right, 1.0), (~right, -1.0)):
        others = len(every) - int(mine.sum())
        beaten = (ranks[mine] - stats.rankdata(every[mine])) / others
        share = beaten if sign > 0 else 1 - beaten
        sums.append(np.bincount(task[mine], (share - value) / mine.sum(), len(p)))
        groups.append(len(np.unique(task[mine])))
    few = min(groups)
    if few < 2:
        return Interval(value, 0.0, 1.0)
    (a, b), tasks = sums, len(p)
    variance = sum(g / (g - 1) * float((x**2).sum()) for g, x in zip(groups, sums, strict=True))
    variance = max(variance + 2 * tasks / (tasks - 1) * float((a * b).sum()), 0.0)
    trials, degrees = float(few), math.inf
    if 0 < value < 1:
        room = SPARE * value * (1 - value) / (few * (few - 1))
        trials, degrees = trials_of(value, variance + room, (0.0, 1.0)), degrees_with(room, variance, few - 1)
    return score_interval(value, trials, degrees, confidence=confidence)


def clustered_intervals(
    p: Sequence[NDArray[np.float64]],
    y: Sequence[NDArray[np.float64]],
    statistics: Statistics,
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> list[Interval]:
    """Statistics of all confidences and outcomes, with their intervals from drawing tasks with replacement.

    G / (G - 1) times the variance over resamples of the G tasks is the estimate's, with G - 1 degrees of freedom; the
    ends are those of :func:`~assay.statistics.intervals.score_interval`. Where nothing varies each task counts for one
    trial. Resamples without a value are left out. Of one task the ends are NaN.

    Args:
        p, y: confidences and outcomes of each task.
        statistics: numbers in [0, 1] of all of both, in one row each; not much biased.
        confidence: coverage.
        resamples: 400, or fewer of many samples, unless given.
        seed: of the resampling.
    """
    every, right = np.concatenate(p), np.concatenate(y)
    many = resamples or int(np.clip(5_000_000 // len(every), 50, 400))
    starts = np.cumsum([0, *map(len, p)])
    where = [np.arange(a, b) for a, b in pairwise(starts)]
    rng = np.random.default_rng(seed)
    values = np.array(statistics(every, right))
    tasks = len(where)
    if tasks < 2:
        return [Interval(v, math.nan, math.nan) for v in values.tolist()]
    drawn = np.empty((many, len(values)))
    for i in range(many):
        rows = np.concatenate([where[j] for j in rng.integers(tasks, size=tasks)])
        drawn[i] = statistics(every[rows], right[rows])
    out = []
    for value, column in zip(values.tolist(), drawn.T, strict=True):
        found = column[np.isfinite(column)]
        variance = tasks / (tasks - 1) * float(found.var()) if len(found) else 0.0
        trials = trials_of(value, variance, (0.0, 1.0)) if variance > 1e-18 and 0 < value < 1 else float(tasks)
        out.append(score_interval(value, trials, tasks - 1, confidence=confidence))
    return out
