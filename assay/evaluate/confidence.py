"""How far the confidences of judged samples can be believed, with intervals that draw whole tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from assay.evaluate.calibration import auroc, brier, expected_calibration_error, selective
from assay.evaluate.intervals import Interval, ratio_interval
from assay.evaluate.sample import Sample

BARS = (0.5, 0.75, 0.9)
"""Confidences from which on an answer is given, for the accuracy with abstention."""

ANSWERED = (0.5, 0.8)
"""Shares of the samples, the most confident, for the accuracy of those."""

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
    names = ["auroc"] if 0 < right.sum() < len(right) else []
    names += ["aurc", *(f"accuracy@{share:.0%}" for share in ANSWERED)]
    probable = bool(every.min() >= 0 and every.max() <= 1)
    names += ["ece"] if probable else []

    def statistics(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[float]:
        curve = selective(a, b)
        last = [max(0, int(np.ceil(share * len(a) - 1e-9)) - 1) for share in ANSWERED]
        ranked = [auroc(a, b)] if names[0] == "auroc" else []
        gap = [expected_calibration_error(a, b)] if probable else []
        return [*ranked, curve.area, *(float(curve.accuracy[i]) for i in last), *gap]

    for name, found in zip(names, clustered_bootstrap(p, y, statistics), strict=True):
        yield name, found, many
    if not probable:
        return
    size = [len(a) for a in p]
    yield "brier", ratio_interval([brier(a, b) * len(a) for a, b in zip(p, y, strict=True)], size, bounds=(0, 1)), many
    yield (
        "overconfidence",
        ratio_interval([(a - b).sum() for a, b in zip(p, y, strict=True)], size, bounds=(-1, 1)),
        many,
    )
    for bar in BARS:
        penalty = bar / (1 - bar)
        worth = [np.where(a >= bar, np.where(b > 0, 1.0, -penalty), 0.0).sum() for a, b in zip(p, y, strict=True)]
        yield f"abstaining@{bar:g}", ratio_interval(worth, size, bounds=(-penalty, 1)), many


def clustered_bootstrap(
    p: Sequence[NDArray[np.float64]],
    y: Sequence[NDArray[np.float64]],
    statistics: Statistics,
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> list[Interval]:
    """Statistics of all confidences and outcomes, with their intervals from drawing tasks with replacement.

    The ends are the estimate less the upper and the lower quantile of how far resamples are from it (the basic
    bootstrap), within [0, 1]: percentiles would count the upward bias of a calibration error twice. Resamples without a
    value, for an AUROC those of one class alone, are left out.

    Args:
        p, y: confidences and outcomes of each task.
        statistics: numbers in [0, 1] of all of both, in one row each.
        confidence: coverage.
        resamples: 500, or fewer of many samples, unless given.
        seed: of the resampling.
    """
    every, right = np.concatenate(p), np.concatenate(y)
    many = resamples or int(np.clip(5_000_000 // len(every), 50, 500))
    starts = np.cumsum([0, *map(len, p)])
    where = [np.arange(a, b) for a, b in pairwise(starts)]
    rng = np.random.default_rng(seed)
    values = np.array(statistics(every, right))
    drawn = np.empty((many, len(values)))
    for i in range(many):
        rows = np.concatenate([where[j] for j in rng.integers(len(where), size=len(where))])
        drawn[i] = statistics(every[rows], right[rows])
    out = []
    for value, column in zip(values.tolist(), drawn.T, strict=True):
        found = column[np.isfinite(column)]
        low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(found) else (value, value)
        out.append(Interval(value, float(max(2 * value - high, 0.0)), float(min(2 * value - low, 1.0))))
    return out
