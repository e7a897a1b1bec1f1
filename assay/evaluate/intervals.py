"""Intervals for means over tasks: tasks are what was drawn, so tasks are what is resampled."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from assay.evaluate.pass_at_k import wilson

MANY = 5_000
"""Tasks from which on the mean is as good as normal, and the bootstrap would only take long."""
BATCH = 1 << 22
"""Most numbers held at once while resampling (32 MiB), whatever the number of tasks."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float


def mean_interval(
    values: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    method: Literal["BCa", "percentile"] = "BCa",
    seed: int = 0,
) -> Interval:
    """Mean of per-task values with its bootstrap interval over tasks.

    All samples of a task move together, so that their correlation widens the interval as it should.

    The bootstrap cannot see what the data do not show: resamples of equal values are equal, and an interval of no
    width would claim certainty from any number of tasks. Where the range of a value is known (``bounds``) two cases
    are therefore answered exactly instead: values that are all 0 or 1 are a proportion (Wilson), and equal values v
    leave room for a share p of unseen tasks, p being Wilson's upper end for 0 of n: ``[v - p (v - a), v + p (b - v)]``.
    From :data:`MANY` values on the interval is the normal one.

    Args:
        values: ``(tasks,)``, one number per task.
        bounds: smallest and largest possible value ``(a, b)``, where known.
        confidence: coverage of the interval.
        resamples: bootstrap resamples.
        method: bias-corrected and accelerated, or plain percentiles.
        seed: of the resampling; the same seed gives the same interval.

    Raises:
        ValueError: no values, or values that are not finite or out of bounds.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        raise ValueError(f"an interval needs a non-empty row of finite values, got shape {x.shape}")
    mean = float(x.mean())
    slack = 1e-9
    if bounds is not None and (x.min() < bounds[0] - slack or x.max() > bounds[1] + slack):
        raise ValueError(f"values from {x.min():g} to {x.max():g} are outside the bounds {bounds}")
    if bounds == (0, 1) and np.isin(x, (0.0, 1.0)).all():
        return Interval(mean, *wilson(float(x.sum()), x.size, confidence))
    if np.ptp(x) <= 1e-12 * max(1.0, abs(mean)):
        if bounds is None:
            return Interval(mean, mean, mean)
        unseen = wilson(0, x.size, confidence)[1]
        return Interval(mean, mean - unseen * (mean - bounds[0]), mean + unseen * (bounds[1] - mean))
    if x.size >= MANY:
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * float(x.std(ddof=1)) / x.size**0.5
        low, high = bounds or (-np.inf, np.inf)
        return Interval(mean, max(mean - half, low), min(mean + half, high))
    from scipy import stats

    found = stats.bootstrap(
        (x,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, BATCH // x.size),
        confidence_level=confidence,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def paired_interval(
    before: ArrayLike,
    after: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Mean of ``after - before`` over the same tasks in the same order, with its interval over tasks.

    Pairing removes what the two share, the difficulty of each task, which is most of the variance.

    Args:
        before, after: ``(tasks,)`` each.
        bounds: of the difference, e.g. ``(-1, 1)`` for two rates; see :func:`mean_interval`.

    Raises:
        ValueError: different numbers of tasks, or as :func:`mean_interval`.
    """
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"a paired difference needs the same tasks, got {first.size} before and {second.size} after")
    return mean_interval(second - first, bounds=bounds, confidence=confidence, resamples=resamples, seed=seed)


def ratio_interval(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Ratio of two totals over tasks, such as the mean of all samples, robust to samples of a task being alike.

    R = sum_g y_g / sum_g x_g, variance = G / (G - 1) sum_g (y_g - R x_g)^2 / (sum_g x_g)^2 over G tasks, Student's t
    with G - 1 degrees. With y_g the sum of a task's samples and x_g their number it is Liang and Zeger's (1986) for a
    mean. One task alone, and tasks that all have the same ratio, are answered as by :func:`mean_interval`.

    Args:
        numerators, denominators: ``(tasks,)``; denominators at least 0, not all 0.
        bounds: of a task's ratio, where known.

    Raises:
        ValueError: lengths that differ, no tasks, or denominators that are negative or all 0.
    """
    y, x = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if y.shape != x.shape or y.ndim != 1 or not x.size or (x < 0).any() or not x.sum() > 0:
        raise ValueError(f"a ratio of totals needs two rows of the same tasks, got shapes {y.shape} and {x.shape}")
    ratio, tasks = float(y.sum() / x.sum()), x.size
    left = y - ratio * x
    if np.abs(left).max() <= 1e-12 * max(1.0, float(np.abs(y).max())):
        return mean_interval(np.full(tasks, ratio), bounds=bounds, confidence=confidence)
    from scipy import stats

    error = float(np.sqrt(tasks / (tasks - 1) * (left**2).sum())) / float(x.sum())
    half = float(stats.t.ppf(0.5 + confidence / 2, tasks - 1)) * error
    low, high = bounds or (-np.inf, np.inf)
    return Interval(ratio, max(ratio - half, low), min(ratio + half, high))
