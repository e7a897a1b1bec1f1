"""Runs that fell: values far below the others of their kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

FAR = 3.0
"""Interquartile ranges below the first quartile (Tukey, Exploratory Data Analysis 1977: "far out")."""


def fallen(values: ArrayLike) -> int:
    """Return how many of ``values`` are further below the first quartile than :data:`FAR` interquartile ranges.

    Args:
        values: ``(runs,)``, one or more.
    """
    x = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(x, [0.25, 0.75])
    return int((x < low - FAR * (high - low) - 1e-9 * max(1.0, abs(low))).sum())
