"""Shares over runs and tasks: performance profiles, and how likely a run of one method beats a run of another."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.aggregate import BLOCK, Method, Row, Scores, resampled, table
from assay.statistics.intervals import Interval, score_interval

SPARE = 0.2
"""Runs that are added on either side of a threshold to estimate how shares vary."""


def profile(
    scores: ArrayLike,
    thresholds: ArrayLike,
    *,
    of_means: bool = False,
    resamples: int = 2_000,
    method: Method = "t",
    seed: int = 0,
) -> tuple[Scores, Scores, Scores]:
    """Performance profile: share of scores above each threshold, with the ends of its pointwise 95% interval.

    ``t``: the variance of a share is that of its tasks' shares of n runs, each with :data:`SPARE` runs more on both
    sides; the ends are those of :func:`~assay.statistics.intervals.score_interval`, which for one task is Wilson's.
    With ``of_means``, whose value is a number of tasks, they are quantiles of that number where each task's mean is
    drawn from Student's distribution about it. ``percentile`` has the quantiles of the stratified bootstrap, as
    rliable.

    Args:
        scores: ``(runs, tasks)``.
        thresholds: ``(P,)``.
        of_means: the share of tasks whose mean score is above, in place of the share of runs.
        method: see above.
        resamples, seed: of what is drawn.

    Returns:
        Three arrays ``(P,)``: value, low, high.

    Raises:
        ValueError: as :func:`~assay.statistics.aggregate.table`.
    """
    x, tau, rng = table(scores), np.asarray(thresholds, dtype=np.float64), np.random.default_rng(seed)
    runs, tasks = x.shape

    def above(blocks: Scores) -> Scores:
        values = blocks.mean(-2) if of_means else blocks.reshape(*blocks.shape[:-2], -1)
        ordered = np.sort(values, -1)
        if ordered.ndim == 1:
            return 1 - np.searchsorted(ordered, tau, side="right") / ordered.size
        return np.stack([1 - np.searchsorted(row, tau, side="right") / row.size for row in ordered])

    value = above(x)
    if method == "percentile" or (of_means and runs > 1):
        blocks = [_means(x, resamples, rng)] if method == "t" else resampled(x, resamples, rng)
        low, high = np.quantile(np.concatenate([above(block) for block in blocks]), [0.025, 0.975], axis=0)
        return value, low, high
    if of_means:
        return value, np.zeros_like(value), np.ones_like(value)
    # A task all of whose runs are on one side may not be all there.
    shares = ((x[..., None] > tau).sum(0) + SPARE) / (runs + 2 * SPARE)
    variances = (shares * (1 - shares)).sum(0) / runs / tasks**2
    middle = (value * runs * tasks + SPARE) / (runs * tasks + 2 * SPARE)
    trials = middle * (1 - middle) / variances
    found = [score_interval(v, n, math.inf) for v, n in zip(value.tolist(), trials.tolist(), strict=True)]
    return value, np.array([i.low for i in found]), np.array([i.high for i in found])


def _means(x: Scores, draws: int, rng: np.random.Generator) -> Scores:
    """Means of tasks as Student's distribution has them, ``(draws, 1, tasks)``."""
    runs, tasks = x.shape
    away = rng.standard_t(runs - 1, size=(draws, tasks)) * x.std(0, ddof=1) / np.sqrt(runs)
    return np.asarray((x.mean(0) + away)[:, None, :])


def probability_of_improvement(
    better: ArrayLike,
    baseline: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    method: Method = "t",
    seed: int = 0,
) -> Interval:
    """Mean over tasks of P(a run of ``better`` beats one of ``baseline``) + half that of a tie, with its interval.

    Per task it is Mann and Whitney's U over the number of pairs. ``t``: its variance is that of DeLong, DeLong and
    Clarke-Pearson (1988) within each task, and at least a 1/tasks part of Hanley and McNeil's (1982) at the same
    probability, which is above 0 also where all runs of one are better; the ends are those of
    :func:`~assay.statistics.intervals.score_interval`. ``percentile``: runs of both are resampled within tasks.

    Args:
        better, baseline: ``(runs, tasks)`` each, of the same tasks.
        confidence: coverage.
        method: see above; with one run of either the ends of ``t`` are 0 and 1.
        resamples, seed: of the bootstrap.

    Raises:
        ValueError: different numbers of tasks, or as :func:`~assay.statistics.aggregate.table`.
    """
    x, y = table(better), table(baseline)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"scores on {x.shape[1]} and on {y.shape[1]} tasks cannot be compared task by task")

    def wins(a: Scores, b: Scores) -> Scores:
        return np.asarray(0.5 + 0.5 * np.sign(a[..., :, None, :] - b[..., None, :, :]))

    table_of = wins(x, y)
    value = float(table_of.mean())
    (m, tasks), n = x.shape, len(y)
    if method == "percentile":
        rng = np.random.default_rng(seed)
        size = max(1, BLOCK // (m * y.size))
        found = []
        for start in range(0, resamples, size):
            b = min(size, resamples - start)
            a, c = (np.concatenate(list(resampled(z, b, rng))) for z in (x, y))
            found.append(wins(a, c).mean((-3, -2, -1)))
        low, high = np.quantile(np.concatenate(found), [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(value, float(low), float(high))
    if min(m, n) < 2:
        return Interval(value, 0.0, 1.0)
    ours = table_of.mean(1).var(0, ddof=1) / m / tasks**2
    theirs = table_of.mean(0).var(0, ddof=1) / n / tasks**2
    # Half a win and half a defeat more, as if there were a pair more, keep it from the bounds.
    pairs = m * n / (m + n) * tasks
    p = (value * pairs + 0.5) / (pairs + 1)
    one, other = p / (2 - p) - p**2, 2 * p**2 / (1 + p) - p**2
    least = (p * (1 - p) + (m - 1) * one + (n - 1) * other) / (m * n) / tasks**2
    degrees = _degrees([(ours, m - 1), (theirs, n - 1)])
    return _share(value, float(ours.sum() + theirs.sum()), p * (1 - p) / least, degrees, confidence)


def _degrees(parts: list[tuple[Row, int]]) -> float:
    """Degrees of freedom of a sum of variances, of which each has so many (Satterthwaite); of all if there is none."""
    total = sum(float(v.sum()) for v, _ in parts)
    if not total > 0:
        return float(sum(len(v) * d for v, d in parts))
    return total**2 / sum(float((v**2).sum()) / d for v, d in parts)


def _share(value: float, variance: float, most: float, degrees: float, confidence: float = 0.95) -> Interval:
    """The interval of a share with the trials its variance amounts to, of which there are at most so many."""
    trials = min(value * (1 - value) / variance, most) if variance > 0 else most
    return score_interval(value, trials, degrees, confidence=confidence)
