"""The mean difference of two arms over paired seeds, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean difference of two arms over paired seeds, with the ends of its 95% interval.

    The claim is ``shown`` iff the interval lies above zero, and the ``opposite`` is iff it lies below.
    """

    value: float
    low: float
    high: float
    seeds: int

    @property
    def shown(self) -> bool:
        return self.low > 0

    @property
    def verdict(self) -> str:
        return "shown" if self.low > 0 else "opposite" if self.high < 0 else "not shown"


def paired_effect(better: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Effect:
    """Return the mean of ``better - baseline`` with Student's interval: mean +- t s / sqrt(n), n - 1 degrees.

    A handful of seeds is too few to resample, so the differences are taken as normal.

    Raises:
        UsageError: fewer than two seeds, or not as many of one arm as of the other.
    """
    from scipy import stats

    if len(better) != len(baseline) or len(better) < 2:
        raise UsageError(f"an effect needs two or more paired seeds, got {len(better)} and {len(baseline)}")
    differences = np.asarray(better, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    n, mean = len(differences), float(differences.mean())
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1) * differences.std(ddof=1) / math.sqrt(n))
    return Effect(mean, mean - half, mean + half, n)
