"""Where two pass@k curves cross: one model is ahead with few samples, the other with many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.errors import UsageError
from assay.statistics.intervals import Interval, paired_interval
from assay.statistics.pass_at_k import pass_curve

BATCH = 1 << 22
"""Most numbers held at once while resampling."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the model before training catches up with the one after.

    Attributes:
        k: the smallest k at which pass@k before is at least that after; ``None`` if there is none up to ``most``.
        low, high: ends of its 95% interval over tasks; infinite where it is beyond ``most``.
        share: of the resamples of the tasks in which it is at most ``most``.
        most: samples of each task, and so the largest k.
        first, last: pass@k after less before, at k = 1 and at ``most``, with 95% intervals.
        gap: pass@``most`` before less pass@1 after: how far one sample of the trained model is from what the other
            can do.
    """

    k: int | None
    low: float
    high: float
    share: float
    most: int
    first: Interval
    last: Interval
    gap: Interval

    @property
    def verdict(self) -> str:
        """``crosses`` if the model after is ahead at k = 1 and behind at ``most``, both beyond their intervals.

        ``after`` or ``before`` if one is ahead at both ends, ``rises`` if the one after is behind at 1 and ahead at
        ``most``; ``undecided`` if an interval at either end holds zero. As both ends must be decided, the chance to say
        any of these of two equal models is at most that of one interval to err.
        """
        ends = [1 if i.low > 0 else -1 if i.high < 0 else 0 for i in (self.first, self.last)]
        names = {(1, -1): "crosses", (1, 1): "after", (-1, -1): "before", (-1, 1): "rises"}
        return names.get((ends[0], ends[1]), "undecided")


def first_crossing(before: ArrayLike, after: ArrayLike) -> int | None:
    """Return the smallest k with ``before[k - 1] >= after[k - 1]``, ``None`` if there is none.

    Args:
        before, after: pass@k at k = 1, 2, ..., of the same length.

    Raises:
        UsageError: lengths that differ.
    """
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if first.shape != second.shape:
        raise UsageError(f"two curves to compare are as long, got {first.size} and {second.size} values of k")
    # Curves that meet in exact arithmetic, at 1 for instance, must not be told apart by the last digit.
    found = np.flatnonzero(first >= second - 1e-12)
    return int(found[0]) + 1 if found.size else None


def crossing(
    before: tuple[ArrayLike, ArrayLike],
    after: tuple[ArrayLike, ArrayLike],
    most: int,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Crossing:
    """Estimate where pass@k before reaches pass@k after, with an interval from a bootstrap over tasks.

    The curves are unbiased at each k (:func:`assay.statistics.pass_at_k.pass_curve`); where they cross is a function of
    them and has the interval of percentiles.

    Source: "Does Reinforcement Learning Really Incentivize Reasoning Capacity in LLMs Beyond the Base Model?"
    (arXiv 2504.13837), which reads the crossing and the gap of sampling efficiency off the curves.

    Args:
        before, after: samples and right samples of each task, ``(tasks,)`` each, tasks in the same order.
        most: largest k.
        resamples, seed: of the bootstrap.

    Raises:
        UsageError: no tasks, or not the same number of them.
        ValueError: as :func:`assay.statistics.pass_at_k.pass_curve`.
    """
    table = np.stack([np.asarray(x, dtype=np.float64).ravel() for pair in (before, after) for x in pair], 1)
    if not len(table):
        raise UsageError("a crossing needs at least one task")
    ks = range(1, most + 1)
    # Tasks with the same counts are alike: what is drawn is how many of each kind there are.
    kinds, where, sizes = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    b, a = (pass_curve(kinds[:, i], kinds[:, i + 1], ks) for i in (0, 2))
    weights = sizes / len(table)
    k = first_crossing(weights @ b, weights @ a)
    found = _resampled(a - b, sizes, resamples, np.random.default_rng(seed))
    low, high = np.quantile(found, [0.025, 0.975], method="inverted_cdf")
    each = where.ravel()

    def difference(x: NDArray[np.float64], y: NDArray[np.float64]) -> Interval:
        return paired_interval(x[each], y[each], bounds=(-1, 1))

    return Crossing(
        k,
        float(low),
        float(high),
        float(np.isfinite(found).mean()),
        most,
        difference(b[:, 0], a[:, 0]),
        difference(b[:, -1], a[:, -1]),
        difference(a[:, 0], b[:, -1]),
    )


def _resampled(
    ahead: NDArray[np.float64], sizes: Sequence[int] | NDArray[np.int64], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """First k at which the mean of ``ahead`` ``(kinds, k)`` over resampled tasks is not positive; infinite if none."""
    total = int(np.sum(sizes))
    share = np.asarray(sizes) / total
    size = max(1, BATCH // max(ahead.shape))
    out: list[NDArray[np.float64]] = []
    for start in range(0, resamples, size):
        drawn = rng.multinomial(total, share, size=min(size, resamples - start))
        behind = drawn.astype(np.float64) @ ahead <= 1e-12 * total
        out.append(np.where(behind.any(1), behind.argmax(1) + 1.0, math.inf))
    return np.concatenate(out)
