"""How far a calibration error of few samples can be believed: it is biased upward, and its interval is not about it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.statistics.calibration import bin_of, expected_calibration_error
from assay.statistics.intervals import Interval

MOST = 4.0
"""Largest factor that the gaps seen are scaled by."""


def calibration_interval(
    p: Sequence[NDArray[np.float64]],
    y: Sequence[NDArray[np.float64]],
    *,
    bins: int = 15,
    confidence: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Expected calibration error with an interval of what it would be of endless tasks like these.

    The error is a sum over bins of absolute values, e_b = sum (y - p) / n, each of which noise makes larger: calibrated
    confidences show an error too, and a bootstrap repeats that bias. The interval is therefore made of the true gaps
    c e, c >= 0, under which the error seen would be neither among the 2.5 % largest nor among the 2.5 % smallest: it is
    simulated as sum_b |c e_b + noise_b|, noise being normal with the covariance of the bins over tasks, widened by
    Student's quantile. The lower end is 0 where the error may be all noise. The interval holds at least Student's, with
    the standard error of the sum at the signs seen, about a point a quarter of the way from the error to
    sum_b sqrt(e_b^2 - s_b^2), s_b the standard error of e_b: that sum takes more than the bias off, and a quarter is
    what simulation asks for. Of few samples the interval covers too often. The value is the error as it is commonly
    given.

    Args:
        p, y: confidences in [0, 1] and outcomes of each task; of one task the ends are NaN.
        bins: of equal width, see :func:`~assay.statistics.calibration.expected_calibration_error`.
        confidence: coverage.
        draws: of the simulation.
        seed: of the simulation.

    Raises:
        ValueError: as :func:`~assay.statistics.calibration.expected_calibration_error`.
    """
    from scipy import stats

    every, right = np.concatenate(p), np.concatenate(y)
    error, tasks = expected_calibration_error(every, right, bins), len(p)
    if tasks < 2:
        return Interval(error, math.nan, math.nan)
    task = np.repeat(np.arange(tasks), [len(row) for row in p])
    flat = np.bincount(task * bins + bin_of(every, bins), weights=right - every, minlength=tasks * bins)
    shares = flat.reshape(tasks, bins) / len(every)
    size = np.array([len(row) for row in p])[:, None] / len(every)
    seen = shares.sum(0)
    # As of a ratio of totals: tasks differ in how many samples they have.
    apart = (shares - size * seen) * np.sqrt(tasks / (tasks - 1))
    level = 0.5 + confidence / 2
    wider = float(stats.t.ppf(level, tasks - 1) / stats.norm.ppf(level))
    noise = wider * np.random.default_rng(seed).normal(size=(draws, tasks)) @ apart

    def end(quantile: float) -> float:
        """The scale at which the error seen is that quantile of the errors there might be."""

        def above(scale: float) -> bool:
            return bool(np.quantile(np.abs(scale * seen + noise).sum(1), quantile) >= error)

        low, high = 0.0, MOST
        if above(low):
            return 0.0
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (low, middle) if above(middle) else (middle, high)
        return high

    # Gaps seen are spread over more bins than true ones, which puts too much of the error down to noise.
    unbiased = float(np.sqrt(np.maximum(seen**2 - (apart**2).sum(0), 0.0)).sum())
    spread = float(np.sqrt(((apart @ np.sign(seen)) ** 2).sum()))
    centre, half = (3 * error + unbiased) / 4, float(stats.t.ppf(level, tasks - 1)) * spread
    low, high = min(end(level) * error, centre - half), max(end(1 - level) * error, centre + half)
    return Interval(error, max(low, 0.0), min(high, 1.0))
