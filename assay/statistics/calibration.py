"""How far a confidence can be believed: calibration, discrimination, and accuracy where one may abstain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _checked(confidence: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, y = np.asarray(confidence, dtype=np.float64).ravel(), np.asarray(right, dtype=np.float64).ravel()
    if len(p) != len(y) or not len(p):
        raise ValueError(f"{len(p)} confidences for {len(y)} outcomes; give one for each, and at least one")
    if not np.isfinite(p).all() or not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("confidences must be finite, outcomes true or false")
    return p, y


def expected_calibration_error(
    confidence: ArrayLike, right: ArrayLike, bins: int = 15, equal_mass: bool = False
) -> float:
    """ECE = sum_b n_b / n |accuracy_b - mean confidence_b| over bins of equal width on [0, 1], or of equal mass.

    A bin is (low, high]; 0 belongs to the first.

    Source: On Calibration of Modern Neural Networks (arXiv 1706.04599), equation 3.

    Raises:
        ValueError: nothing, lengths that differ, or confidences outside [0, 1].
    """
    p, y = _checked(confidence, right)
    if p.min() < 0 or p.max() > 1:
        raise ValueError("a calibration error is of probabilities: confidences must lie in [0, 1]")
    if equal_mass:
        order = np.argsort(p, kind="stable")
        parts = [part for part in np.array_split(order, bins) if len(part)]
    else:
        which = bin_of(p, bins)
        parts = [np.flatnonzero(which == b) for b in np.unique(which)]
    return float(sum(len(part) / len(p) * abs(y[part].mean() - p[part].mean()) for part in parts))


def bin_of(confidence: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of equal width, (low, high], that each confidence in [0, 1] is in."""
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def brier(confidence: ArrayLike, right: ArrayLike) -> float:
    """Mean of (p - y)^2.

    Raises:
        ValueError: as :func:`expected_calibration_error`.
    """
    p, y = _checked(confidence, right)
    if p.min() < 0 or p.max() > 1:
        raise ValueError("Brier's score is of probabilities: confidences must lie in [0, 1]")
    return float(((p - y) ** 2).mean())


def auroc(confidence: ArrayLike, right: ArrayLike) -> float:
    """P(a right one is more confident than a wrong one) + half that of a tie; NaN if all are right or all wrong."""
    p, y = _checked(confidence, right)
    good = int(y.sum())
    if good in (0, len(y)):
        return float("nan")
    from scipy import stats

    ranks = stats.rankdata(p)
    return float((ranks[y == 1].sum() - good * (good + 1) / 2) / (good * (len(y) - good)))


@dataclass(frozen=True, slots=True)
class Selective:
    """Accuracy against coverage when the least confident are left unanswered.

    Attributes:
        coverage, accuracy: ``(n,)``, for the 1, 2, ... n most confident; equal confidences are answered together.
        area: mean of the risk 1 - accuracy over coverage (AURC); smaller is better.
    """

    coverage: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    area: float


def selective(confidence: ArrayLike, right: ArrayLike) -> Selective:
    """Return the accuracy of answering only when confident, at every coverage.

    Source: Selective Classification for Deep Neural Networks (arXiv 1705.08500).
    """
    p, y = _checked(confidence, right)
    order = np.argsort(-p, kind="stable")
    sorted_p = p[order]
    # Those that are equally sure are answered together: each of them counts as the mean of them all.
    levels, start, size = np.unique(-sorted_p, return_index=True, return_counts=True)
    means = np.add.reduceat(y[order], start) / size
    good = np.cumsum(np.repeat(means, size))
    n = np.arange(1, len(p) + 1)
    accuracy = good / n
    assert len(levels) == len(size)
    return Selective(n / len(p), accuracy, float((1 - accuracy).mean()))


def abstaining_accuracy(right: ArrayLike, answered: ArrayLike, penalty: float = 1.0) -> float:
    """Mean of +1 for a right answer, -penalty for a wrong one, 0 for none; penalty t / (1 - t) suits a bar of t.

    Raises:
        ValueError: lengths that differ, or nothing.
    """
    y, a = np.asarray(right, dtype=bool).ravel(), np.asarray(answered, dtype=bool).ravel()
    if len(y) != len(a) or not len(y):
        raise ValueError(f"{len(y)} outcomes and {len(a)} answers; give as many of one as of the other")
    return float(np.where(a, np.where(y, 1.0, -penalty), 0.0).mean())
