"""Scores of several runs on several tasks in one number, with intervals from resampling runs within tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.statistics.intervals import Bounds, Interval, score_interval, skewed_interval

Scores = NDArray[np.float64]
Row = NDArray[np.float64]
Method = Literal["t", "percentile"]
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


@dataclass(frozen=True, slots=True)
class Resampling:
    """What a bootstrap says of an aggregate.

    Attributes:
        value: of all scores.
        drawn: ``(resamples,)``, of each resample.
        pull: ``(units, per unit)``: how far drawing an observation once more moves the aggregate, by the covariance of
            the resamples with how often each drew it (the infinitesimal jackknife of Efron 2014). A unit is what is
            drawn from by itself: the runs of a task, or all tasks.
    """

    value: float
    drawn: Row
    pull: Scores

    @property
    def error(self) -> float:
        """Standard error: c times the deviation of the resamples, with c = sqrt(n / (n - 1)) for n draws of a unit."""
        n = self.pull.shape[1]
        return math.sqrt(n / (n - 1)) * float(self.drawn.std())

    @property
    def degrees(self) -> float:
        """Degrees of freedom, from how the variance is shared among units.

        Satterthwaite's ``sum(v)^2 / sum(v^2 / d)``, v the variance of a unit and d = n - 1 its degrees, are too few
        where d is small: v^2 is on average 1 + 2 / d times what it estimates. Welch (1947) takes
        ``sum(v)^2 / sum(v^2 / (d + 2)) - 2``; here 2 is 1 / d, since with 2 the intervals of three runs of three skewed
        tasks hold in 92 %. There are at most d of each unit.
        """
        units, n = self.pull.shape
        # What so many resamples would show of observations without any pull is taken off.
        shares = np.maximum((self.pull**2).sum(1) - (n - 1) / len(self.drawn) * self.drawn.var(), 0.0)
        if not shares.any():
            return float(n - 1)
        d = n - 1
        found = (d + 1 / d) * float(shares.sum() ** 2 / (shares**2).sum()) - 1 / d
        return min(max(found, float(d)), float(units * d))

    def interval(self, confidence: float = 0.95, transformed: bool = False) -> Interval:
        """Return the interval that allows for how little a few runs say of their own spread.

        Resampling n observations has a variance (n - 1) / n times too small, and quantiles of a normal one, as if that
        variance were known. With c as in ``error`` and t Student's quantile, the ends of the percentile interval move
        away from the estimate by the factor c t / z. ``transformed`` takes instead the error and the skewness of the
        pulls to :func:`~assay.statistics.intervals.skewed_interval`.
        """
        from scipy import stats

        n = self.pull.shape[1]
        if n < 2:
            return Interval(self.value, -math.inf, math.inf)
        if self.equal:
            return Interval(self.value, self.value, self.value)
        if transformed:
            skewness = float((self.pull**3).sum() / (self.pull**2).sum() ** 1.5)
            return skewed_interval(self.value, self.error, self.degrees, skewness, confidence)
        level = 0.5 + confidence / 2
        low, high = np.quantile(self.drawn, [1 - level, level]).tolist()
        factor = math.sqrt(n / (n - 1)) * float(stats.t.ppf(level, self.degrees) / stats.norm.ppf(level))
        return Interval(self.value, self.value + factor * (low - self.value), self.value + factor * (high - self.value))

    @property
    def equal(self) -> bool:
        """Whether all resamples have the same value."""
        return bool(np.ptp(self.drawn) <= 1e-12 * max(1.0, abs(self.value)))

    def bounded(self, bounds: Bounds, step: float = 0.0, confidence: float = 0.95) -> Interval:
        """Return :meth:`interval` within bounds, with ends that go out towards those of Wilson's equation.

        Two or three runs near a bound seldom show the one that is far from it, so they look alike and :meth:`interval`
        is short on that side; :func:`~assay.statistics.intervals.score_interval` is long there. Where its end is
        further out, it is taken for up to 2 degrees of freedom, and (2 / d)^2 of the way to it for d, which show their
        spread.

        Scores on a grid vary by its rounding at least, with variance step^2 / 12 each; where all are at a bound, they
        are taken for that many trials of 0 and 1, 1 / step to each, as one trial that fails would make them.

        Args:
            bounds: smallest and largest possible value.
            step: distance of neighbouring scores; 0 if unknown, and scores that are all the same have no width.
            confidence: coverage.
        """
        plain = self.interval(confidence)
        low, high = max(plain.low, bounds[0]), min(plain.high, bounds[1])
        if self.pull.shape[1] < 2 or (self.equal and step == 0):
            return Interval(self.value, low, high)
        width, size = bounds[1] - bounds[0], self.pull.size
        p = min(max((self.value - bounds[0]) / width, 0.0), 1.0)
        variance = max(self.error**2, step**2 / (12 * size)) / width**2
        fewest = size * width / step if step else math.inf
        trials = p * (1 - p) / variance if 1e-12 < p < 1 - 1e-12 else fewest
        score = score_interval(self.value, trials, self.degrees, bounds, confidence)
        part = min(1.0, (2 / self.degrees) ** 2)
        low, high = low - part * max(low - score.low, 0.0), high + part * max(score.high - high, 0.0)
        return Interval(self.value, low, high)


def resampling(
    x: Scores, function: Aggregate, resamples: int, rng: np.random.Generator, tasks: bool = False
) -> Resampling:
    """Resample runs within tasks, or whole ``tasks``; see :class:`Resampling`.

    Args:
        x: ``(runs, tasks)``.
        function: the aggregate.
    """
    runs, many = x.shape
    size = max(1, BLOCK // x.size)
    drawn: list[Row] = []
    value = float(function(x))
    units, each = (1, many) if tasks else (many, runs)
    sums = np.zeros(units * each)
    for start in range(0, resamples, size):
        b = min(size, resamples - start)
        if tasks:
            chosen = rng.integers(many, size=(b, many))
            found = function(np.moveaxis(x[:, chosen], 0, 1))
        else:
            rows = rng.integers(runs, size=(b, runs, many))
            found = function(x[rows, np.arange(many)])
            chosen = (rows + runs * np.arange(many)).reshape(b, -1)
        drawn.append(found)
        sums += np.bincount(chosen.ravel(), weights=np.repeat(found - value, chosen.shape[1]), minlength=len(sums))
    pull = (sums / resamples).reshape(units, each)
    # Each observation is drawn once on average, and all of a unit together always as often.
    return Resampling(value, np.concatenate(drawn), pull - pull.mean(1, keepdims=True))


def interval(
    scores: ArrayLike,
    aggregate: Aggregate | str = "iqm",
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    tasks: bool = False,
    method: Method = "t",
    bounds: Bounds | None = None,
    step: float = 0.0,
    seed: int = 0,
) -> Interval:
    """An aggregate with its stratified bootstrap interval.

    ``percentile`` is rliable's: the quantiles of the resamples. Of 5 runs on few tasks it covers in 80 to 90 % where 95
    are said, since it takes the spread seen in five runs for the true one. ``t`` allows for that
    (:meth:`Resampling.interval`; the mean and the optimality gap, which feel the tails, and the median with the
    correction for skewness; others, where bounds are known, by :meth:`Resampling.bounded`); ``benchmarks/coverage.py``
    has the coverage of both. The median over tasks is biased where
    the middle tasks' means are closer than their errors, which no interval of these mends.

    Source: Deep Reinforcement Learning at the Edge of the Statistical Precipice (arXiv 2108.13264), section 4, of the
    resampling and of ``percentile``.

    Args:
        scores: ``(runs, tasks)``.
        aggregate: a name of :data:`AGGREGATES`, or a function.
        confidence: coverage.
        resamples: of the bootstrap.
        tasks: the interval is about tasks like these, not these tasks. ``t`` draws whole tasks, whose runs bring their
            spread with them; ``percentile`` draws runs within them too.
        method: see above. With one run of each task, or one task with ``tasks``, the ends of ``t`` are infinite.
        bounds: smallest and largest possible value, where known; the ends stay within.
        step: distance of neighbouring scores, 0 if unknown; with it, bounded scores that are all the same have a width.
        seed: of the resampling.

    Raises:
        ValueError: as :func:`table`, or no such method.
    """
    x, rng = table(scores), np.random.default_rng(seed)
    function = AGGREGATES[aggregate] if isinstance(aggregate, str) else aggregate
    if method == "t":
        drawn, tails = resampling(x, function, resamples, rng, tasks), feels_tails(function)
        if bounds is not None and not tails:
            return drawn.bounded(bounds, step, confidence)
        found, (low, high) = drawn.interval(confidence, tails), bounds or (-math.inf, math.inf)
        return Interval(found.value, max(found.low, low), min(found.high, high))
    if method != "percentile":
        raise ValueError(f"an interval is made by t or by percentile, not by {method!r}")
    every = np.concatenate([function(block) for block in resampled(x, resamples, rng, tasks)])
    ends = np.quantile(every, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(function(x)), float(ends[0]), float(ends[1]))


def feels_tails(function: Aggregate) -> bool:
    """Say whether an aggregate is one whose interval is corrected for skewness."""
    return getattr(function, "func", function) in (mean, median, optimality_gap)
