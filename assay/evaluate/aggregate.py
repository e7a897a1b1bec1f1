"""Scores of several runs on several tasks in one number, with intervals from resampling runs within tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.evaluate.intervals import Interval

Scores = NDArray[np.float64]
Aggregate = Callable[[Scores], Scores]
"""Maps scores ``(..., runs, tasks)`` to numbers ``(...)``."""

BLOCK = 1 << 22
"""Scores held at once while resampling."""


def mean(scores: Scores) -> Scores:
    """Mean over tasks of the mean over runs."""
    return np.asarray(scores.mean((-2, -1)))


def median(scores: Scores) -> Scores:
    """Median over tasks of the mean over runs."""
    return np.asarray(np.median(scores.mean(-2), -1))


def iqm(scores: Scores) -> Scores:
    """Interquartile mean: the mean of the middle half of all runs x tasks scores, floor(n / 4) left out at each end."""
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), -1)
    cut = flat.shape[-1] // 4
    return np.asarray(flat[..., cut : flat.shape[-1] - cut].mean(-1))


def optimality_gap(scores: Scores, target: float = 1.0) -> Scores:
    """How far scores fall short of ``target`` on average: target - mean(min(score, target))."""
    return np.asarray(target - np.minimum(scores, target).mean((-2, -1)))


AGGREGATES: dict[str, Aggregate] = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}


def table(scores: ArrayLike) -> Scores:
    """Return scores as ``(runs, tasks)`` float64; a row of runs is one task.

    Raises:
        ValueError: another shape, no scores, or scores that are not finite.
    """
    x = np.asarray(scores, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"scores are a table of runs x tasks of finite numbers, not of shape {x.shape}")
    return x


def resampled(x: Scores, resamples: int, rng: np.random.Generator, tasks: bool = False) -> Iterator[Scores]:
    """Yield blocks ``(b, runs, tasks)`` of resamples: runs drawn with replacement within each task, by itself.

    With ``tasks`` the tasks are drawn with replacement too.
    """
    runs, many = x.shape
    size = max(1, BLOCK // x.size)
    for start in range(0, resamples, size):
        b = min(size, resamples - start)
        columns = rng.integers(many, size=(b, 1, many)) if tasks else np.arange(many)[None, None]
        rows = rng.integers(runs, size=(b, runs, many))
        yield x[rows, columns]


def interval(
    scores: ArrayLike,
    aggregate: Aggregate | str = "iqm",
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    tasks: bool = False,
    seed: int = 0,
) -> Interval:
    """An aggregate with its stratified bootstrap interval (percentiles).

    Source: Deep Reinforcement Learning at the Edge of the Statistical Precipice (arXiv 2108.13264), section 4.

    Args:
        scores: ``(runs, tasks)``.
        aggregate: a name of :data:`AGGREGATES`, or a function.
        confidence: coverage.
        resamples: of the bootstrap.
        tasks: draw tasks with replacement too: the interval is then about tasks like these, not these tasks.
        seed: of the resampling.

    Raises:
        ValueError: as :func:`table`.
    """
    x, rng = table(scores), np.random.default_rng(seed)
    function = AGGREGATES[aggregate] if isinstance(aggregate, str) else aggregate
    found = np.concatenate([function(block) for block in resampled(x, resamples, rng, tasks)])
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(function(x)), float(low), float(high))


def profile(
    scores: ArrayLike, thresholds: ArrayLike, *, of_means: bool = False, resamples: int = 2_000, seed: int = 0
) -> tuple[Scores, Scores, Scores]:
    """Performance profile: share of scores above each threshold, with the ends of its pointwise 95% interval.

    Args:
        scores: ``(runs, tasks)``.
        thresholds: ``(P,)``.
        of_means: the share of tasks whose mean score is above, in place of the share of runs.

    Returns:
        Three arrays ``(P,)``: value, low, high.
    """
    x, tau, rng = table(scores), np.asarray(thresholds, dtype=np.float64), np.random.default_rng(seed)

    def above(blocks: Scores) -> Scores:
        values = blocks.mean(-2) if of_means else blocks.reshape(*blocks.shape[:-2], -1)
        ordered = np.sort(values, -1)
        if ordered.ndim == 1:
            return 1 - np.searchsorted(ordered, tau, side="right") / ordered.size
        return np.stack([1 - np.searchsorted(row, tau, side="right") / row.size for row in ordered])

    found = np.concatenate([above(block) for block in resampled(x, resamples, rng)])
    low, high = np.quantile(found, [0.025, 0.975], axis=0)
    return above(x), low, high


def probability_of_improvement(
    better: ArrayLike, baseline: ArrayLike, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Interval:
    """Mean over tasks of P(a run of ``better`` beats one of ``baseline``) + half that of a tie, with its interval.

    Per task it is Mann and Whitney's U over the number of pairs. Runs of both are resampled within tasks.

    Args:
        better, baseline: ``(runs, tasks)`` each, of the same tasks.

    Raises:
        ValueError: different numbers of tasks, or as :func:`table`.
    """
    x, y = table(better), table(baseline)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"scores on {x.shape[1]} and on {y.shape[1]} tasks cannot be compared task by task")

    def chance(a: Scores, b: Scores) -> Scores:
        wins = np.sign(a[..., :, None, :] - b[..., None, :, :])
        return np.asarray((0.5 + 0.5 * wins).mean((-3, -2, -1)))

    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // (x.shape[0] * y.size))
    found = []
    for start in range(0, resamples, size):
        b = min(size, resamples - start)
        a, c = (np.concatenate(list(resampled(z, b, rng))) for z in (x, y))
        found.append(chance(a, c))
    low, high = np.quantile(np.concatenate(found), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(chance(x, y)), float(low), float(high))
