"""Learning curves of several runs on several tasks, with an interval at every checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.aggregate import Aggregate, Method, interval, table
from assay.statistics.intervals import Interval


def efficiency_curve(
    scores: ArrayLike,
    aggregate: Aggregate | str = "iqm",
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    method: Method = "t",
    seed: int = 0,
) -> list[Interval]:
    """An aggregate at each checkpoint with its stratified bootstrap interval, pointwise.

    A run is resampled whole: the same runs of a task are drawn for all checkpoints of a resample, so that the interval
    at a checkpoint is that of :func:`assay.statistics.aggregate.interval` there, and what two checkpoints have in
    common stays in both.

    Source: Deep Reinforcement Learning at the Edge of the Statistical Precipice (arXiv 2108.13264), section 4.

    Args:
        scores: ``(runs, tasks, checkpoints)``; ``(runs, checkpoints)`` is one task.
        aggregate: a name of :data:`~assay.statistics.aggregate.AGGREGATES`, or a function.
        confidence: coverage at each checkpoint.
        resamples: of the bootstrap.
        method: see :func:`assay.statistics.aggregate.interval`.
        seed: of the resampling.

    Raises:
        ValueError: another shape, no scores, or scores that are not finite.
    """
    x = np.asarray(scores, dtype=np.float64)
    x = x[:, None, :] if x.ndim == 2 else x
    if x.ndim != 3 or not x.size:
        raise ValueError(f"a curve is of runs x tasks x checkpoints, not of shape {x.shape}")
    table(x.reshape(len(x), -1))
    # The same seed draws the same runs at every checkpoint.
    return [
        interval(x[:, :, k], aggregate, confidence=confidence, resamples=resamples, method=method, seed=seed)
        for k in range(x.shape[2])
    ]


def first_reached(curve: Sequence[Interval], steps: Sequence[float], target: float) -> float | None:
    """Return the step of the first checkpoint whose whole interval is at ``target`` or above; ``None`` if none is.

    Raises:
        ValueError: not one step for each checkpoint.
    """
    if len(curve) != len(steps):
        raise ValueError(f"{len(steps)} steps for {len(curve)} checkpoints; give one for each")
    return next((float(s) for s, point in zip(steps, curve, strict=True) if point.low >= target), None)
