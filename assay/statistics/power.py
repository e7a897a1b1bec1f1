"""How much must be run to see a difference, and what many comparisons at once cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.statistics.intervals import Interval, ratio_interval


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the variance of a score difference comes from; variances of one draw each.

    Attributes:
        task: between tasks, of the true difference.
        sample: between samples of a task, of both methods together.
        seed: between training seeds, of both methods together.
    """

    task: float
    sample: float
    seed: float = 0.0

    def variance(self, tasks: int, samples: int, seeds: int = 1) -> float:
        """Variance of the mean difference over so many tasks, samples of each and seeds.

        task / tasks + sample / (tasks samples seeds) + seed / seeds: every seed is evaluated on the same tasks.
        """
        return self.task / tasks + self.sample / (tasks * samples * seeds) + self.seed / seeds

    def freedom(self, tasks: int, samples: int, seeds: int = 1) -> float:
        """Degrees of freedom with which a test knows that variance (Satterthwaite 1946); infinite if it is known.

        What is between tasks is estimated from tasks, with tasks - 1. What is between seeds, and with it what samples
        add, from the seeds, with seeds - 1; with a single seed the samples' part is estimated from tasks too, and the
        seed's own variance has to be known.
        """
        between, noise, runs = self.task / tasks, self.sample / (tasks * samples * seeds), self.seed / seeds
        parts = [(between, tasks - 1), (noise + runs, seeds - 1)] if seeds > 1 else [(between + noise, tasks - 1)]
        uncertain = sum(v**2 / df for v, df in parts if df > 0)
        return self.variance(tasks, samples, seeds) ** 2 / uncertain if uncertain > 0 else math.inf


def detectable(
    spread: Spread, tasks: int, samples: int, seeds: int = 1, power: float = 0.8, level: float = 0.05
) -> float:
    """Smallest true difference that a two-sided t-test at ``level`` finds with probability ``power``.

    The difference whose noncentral t is above the test's threshold so often, times sqrt(variance); degrees of freedom
    as of :meth:`Spread.freedom`. Of many tasks or seeds it is (z_{1 - level / 2} + z_{power}) sqrt(variance).
    """
    return _shift(spread.freedom(tasks, samples, seeds), power, level) * math.sqrt(
        spread.variance(tasks, samples, seeds)
    )


def power_of(spread: Spread, difference: float, tasks: int, samples: int, seeds: int = 1, level: float = 0.05) -> float:
    """Probability that a two-sided t-test at ``level`` finds a true ``difference``.

    P(|T| > t_{1 - level / 2}), T noncentral t about |difference| / sqrt(variance) with the degrees of freedom of
    :meth:`Spread.freedom`.
    """
    variance = spread.variance(tasks, samples, seeds)
    if variance == 0:
        return level if difference == 0 else 1.0
    df, d = spread.freedom(tasks, samples, seeds), abs(difference) / math.sqrt(variance)
    return _beyond(d, df, level) + _beyond(-d, df, level)


NORMAL = 1e5
"""Degrees of freedom from which on Student's t is taken as the normal distribution."""


def _beyond(shift: float, df: float, level: float) -> float:
    """Probability that a statistic about ``shift`` lies above the threshold of a two-sided test at ``level``."""
    if df >= NORMAL:
        return NormalDist().cdf(shift - NormalDist().inv_cdf(1 - level / 2))
    from scipy import stats

    return float(stats.nct.sf(stats.t.ppf(1 - level / 2, df), df, shift))


def _shift(df: float, power: float, level: float) -> float:
    """The shift at which :func:`_beyond` is ``power``."""
    start = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    if df >= NORMAL:
        return start
    from scipy.optimize import brentq

    high = max(start, 1.0)
    while _beyond(high, df, level) < power:
        high *= 2
    return float(brentq(lambda shift: _beyond(shift, df, level) - power, 0.0, high, xtol=1e-9))


def needed(
    spread: Spread,
    difference: float,
    *,
    tasks: int | None = None,
    samples: int | None = None,
    seeds: int | None = None,
    power: float = 0.8,
    level: float = 0.05,
    most: int = 1_000_000,
) -> int | None:
    """Smallest number of the one thing left ``None`` (tasks, samples or seeds) that makes ``difference`` detectable.

    Where runs vary by their seed and seeds are asked for, two at least: one seed does not show how much they vary.

    Returns:
        The number; ``None`` if none up to ``most`` is enough, since what is fixed leaves too much variance.

    Raises:
        ValueError: not exactly one of the three left open, or a difference of 0.
    """
    fixed = {"tasks": tasks, "samples": samples, "seeds": seeds}
    left = [name for name, value in fixed.items() if value is None]
    if len(left) != 1 or difference == 0:
        raise ValueError("leave exactly one of tasks, samples and seeds open, and ask for a difference other than 0")

    def enough(n: int) -> bool:
        values = {name: n if value is None else value for name, value in fixed.items()}
        variance = spread.variance(**values)
        return variance == 0 or _beyond(abs(difference) / math.sqrt(variance), spread.freedom(**values), level) >= power

    if not enough(most):
        return None
    low, high = int(left == ["seeds"] and spread.seed > 0), most  # low is not enough, high is
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def binary_spread(before: ArrayLike, after: ArrayLike) -> Spread:
    """Estimate a :class:`Spread` from two tables ``(tasks, samples)`` of 0 and 1, paired by task.

    ``sample`` is the mean over tasks of the samples' variances; ``task`` is the variance of the tasks' mean differences
    less what samples alone make of it, 0 at least.

    Raises:
        ValueError: tables of different tasks, or fewer than two tasks or samples.
    """
    x, y = (np.asarray(t, dtype=np.float64) for t in (before, after))
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or len(x) < 2 or min(x.shape[1], y.shape[1]) < 2:
        raise ValueError("a spread is estimated from two tables of the same two or more tasks x two or more samples")
    sizes = np.full(len(x), x.shape[1]), np.full(len(y), y.shape[1])
    return counted_spread((sizes[0], x.sum(1)), (sizes[1], y.sum(1)))


Counts = tuple[ArrayLike, ArrayLike]
"""Samples of each task, and how many of them are right."""


def counted_spread(before: Counts, after: Counts | None = None, task: float = 0.0) -> Spread:
    """Estimate a :class:`Spread` as :func:`binary_spread` does, from counts; tasks may have different numbers.

    Args:
        before: of one model.
        after: of another, for the same tasks in the same order. Where it is left out, the other is taken to be as good
            in each task but for differences of variance ``task``.
        task: see above.

    Raises:
        ValueError: counts of different tasks, or fewer than two tasks, or samples of one.
    """
    tables = [
        tuple(np.asarray(v, dtype=np.float64) for v in counts) for counts in (before, after) if counts is not None
    ]
    if len({v.shape for t in tables for v in t}) > 1 or len(tables[0][0]) < 2 or any(n.min() < 2 for n, _ in tables):
        raise ValueError("a spread is estimated from two or more samples of each of the same two or more tasks")
    own = [c / n * (1 - c / n) * n / (n - 1) for n, c in tables]
    if after is None:
        return Spread(task, 2 * float(own[0].mean()))
    (n, c), (m, d) = tables
    total, noise = float((d / m - c / n).var(ddof=1)), float(np.mean(own[0] / n + own[1] / m))
    return Spread(max(total - noise, 0.0), float(np.mean(own[0] + own[1])))


def assumed_spread(share: float, correlation: float, task: float = 0.0, seed: float = 0.0) -> Spread:
    """Return the :class:`Spread` of two models that are right in a ``share`` m of samples, before anything was run.

    A sample of a task varies by m (1 - m) (1 - r) on average where two samples of one task correlate by r: the mean of
    p (1 - p) over tasks of success rates p with variance r m (1 - m).

    Args:
        share, correlation: see above, in [0, 1]; a correlation of 1 is tasks always or never solved.
        task, seed: of the :class:`Spread`.
    """
    return Spread(task, 2 * share * (1 - share) * (1 - correlation), seed)


def clustered_interval(values: Sequence[ArrayLike], confidence: float = 0.95) -> Interval:
    """Mean of all samples with an interval that is robust to samples of a task being alike.

    variance = G / (G - 1) sum_g (sum_i (x_gi - mean))^2 / n^2 over G tasks, Student's t with G - 1 degrees.

    Source: Liang and Zeger (1986), with the small-sample factor of Stata; Adding Error Bars to Evals (arXiv
    2411.00640), section 2.2.

    Args:
        values: one row of samples for each task, of any lengths.

    Raises:
        ValueError: fewer than two tasks, or one without samples.
    """
    rows = [np.asarray(v, dtype=np.float64).ravel() for v in values]
    if len(rows) < 2 or not all(len(r) for r in rows):
        raise ValueError("an interval over clusters needs two or more tasks, each with samples")
    return ratio_interval([r.sum() for r in rows], [len(r) for r in rows], confidence=confidence)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values of Holm (1979): rejecting those below a level errs once or more at most so often."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    out = np.empty_like(values)
    out[order] = np.minimum(scaled, 1.0)
    return out


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values of Benjamini and Hochberg (1995): of those rejected below a level at most that share errs."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    scaled = np.minimum.accumulate(values[order] * len(values) / np.arange(len(values), 0, -1))
    out = np.empty_like(values)
    out[order] = np.minimum(scaled, 1.0)
    return out
