"""Two evaluations of the same tasks, cut to what can be compared: as many judged samples of each task from both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.errors import UsageError
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.intervals import Interval, mean_interval, paired_interval

COMPLETE = 0.95
"""Share of the tasks that must have k judged samples on both sides for k samples to be compared."""


@dataclass(frozen=True, slots=True)
class PairedSamples:
    """Judged samples of the same tasks before and after.

    Attributes:
        tasks: ids, in the order of the first evaluation.
        before, after: judged samples of each task, at least ``k``.
        k: samples that are compared per task.
        left_out: tasks with fewer than ``k`` judged samples on either side.
        abstained: samples of both that the verifier could not judge.
    """

    tasks: tuple[str, ...]
    before: tuple[tuple[Sample, ...], ...]
    after: tuple[tuple[Sample, ...], ...]
    k: int
    left_out: int
    abstained: tuple[int, int]

    def counts(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return judged and right samples of each task, before and after."""

        def of(side: tuple[tuple[Sample, ...], ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            return np.array([len(rows) for rows in side]), np.array([sum(s.passed is True for s in r) for r in side])

        return of(self.before), of(self.after)

    def hits(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say of each task whether one of its first ``k`` judged samples was right, before and after."""

        def of(side: tuple[tuple[Sample, ...], ...]) -> NDArray[np.bool_]:
            return np.array([any(s.passed for s in rows[: self.k]) for rows in side])

        return of(self.before), of(self.after)


def paired_samples(before: Evaluation, after: Evaluation) -> PairedSamples:
    """Pair two evaluations by task.

    k is the largest number of judged samples that :data:`COMPLETE` of the tasks have on both sides. Where every verdict
    was given and both have as many samples, it is that number.

    Raises:
        UsageError: the evaluations are of different tasks, or hardly a task was judged in both.
    """
    first, second = before.by_task(), after.by_task()
    if not first or first.keys() != second.keys():
        raise UsageError(
            f"evaluations {before.label!r} and {after.label!r} are of different tasks ({len(first.keys() - second)} "
            f"only in the first, {len(second.keys() - first)} only in the second, {len(first.keys() & second)} in "
            "both); evaluate both on the same tasks"
        )
    sides = [
        {t: tuple(s for s in rows if s.passed is not None) for t, rows in side.items()} for side in (first, second)
    ]
    fewest = sorted((min(len(side[t]) for side in sides) for t in first), reverse=True)
    k = fewest[math.ceil(COMPLETE * len(fewest)) - 1]
    if k < 1:
        none = sum(f == 0 for f in fewest)
        raise UsageError(
            f"{none} of {len(fewest)} tasks have no judged sample in one of {before.label!r} and {after.label!r}; see "
            "why the verifier abstains in the samples' feedback"
        )
    kept = [t for t in first if min(len(side[t]) for side in sides) >= k]
    lost = [sum(s.passed is None for s in e.samples) for e in (before, after)]
    return PairedSamples(
        tuple(kept),
        tuple(sides[0][t] for t in kept),
        tuple(sides[1][t] for t in kept),
        k,
        len(first) - len(kept),
        (lost[0], lost[1]),
    )


def sign_flip_test(before: ArrayLike, after: ArrayLike, *, draws: int = 100_000, seed: int = 0) -> float:
    """Two-sided p-value of the mean difference over tasks, if before and after were drawn alike.

    Then either sign of a task's difference is as likely. The p-value is the share of all ways to set the signs whose
    mean is at least as far from 0: of all of them where at most 16 tasks differ, else of ``draws`` and the one seen,
    which counts as one more. It asks for no law of the differences; of single samples, right or wrong, it is McNemar's
    exact test.

    Args:
        before, after: ``(tasks,)``, in the same order.
        draws, seed: of signs, where there are too many ways.

    Raises:
        ValueError: no tasks, not as many of one as of the other, or values that are not finite.
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or not x.size or not np.isfinite([x, y]).all():
        raise ValueError(f"a paired test needs finite values of the same tasks, got shapes {x.shape} and {y.shape}")
    moved = np.abs(y - x)[y != x]
    seen = abs(float((y - x).sum())) - 1e-9 * max(1.0, float(moved.sum()))
    if len(moved) <= 16:
        codes = np.arange(1 << len(moved))[:, None] >> np.arange(len(moved))
        return float((np.abs((1 - 2 * (codes & 1)) @ moved) >= seen).mean())
    rng, far, size = np.random.default_rng(seed), 0, max(1, (1 << 22) // len(moved))
    for start in range(0, draws, size):
        signs = 1 - 2 * rng.integers(2, size=(min(size, draws - start), len(moved)))
        far += int((np.abs(signs @ moved) >= seen).sum())
    return (far + 1) / (draws + 1)


@dataclass(frozen=True, slots=True)
class Change:
    """A mean over tasks before and after, and their paired difference, each with its 95% interval."""

    before: Interval
    after: Interval
    difference: Interval
    tasks: int


def change(before: ArrayLike, after: ArrayLike, bounds: tuple[float, float] | None = None) -> Change:
    """Compare a quantity of tasks before and after; tasks where one of the two is NaN are left out.

    Args:
        before, after: ``(tasks,)``, in the same order.
        bounds: least and largest possible value, where known.

    Returns:
        NaN throughout if no task is left.
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        nothing = Interval(math.nan, math.nan, math.nan)
        return Change(nothing, nothing, nothing, 0)
    x, y = x[known], y[known]
    room = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    return Change(
        mean_interval(x, bounds=bounds),
        mean_interval(y, bounds=bounds),
        paired_interval(x, y, bounds=room),
        int(known.sum()),
    )
