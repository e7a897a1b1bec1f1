"""What compares rules of selection: effect sizes, equivalent numbers of samples, correlation with length held fixed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.pass_at_k import pass_at_k


def cohens_h(p: float, q: float) -> float:
    """Return 2 asin(sqrt p) - 2 asin(sqrt q), the effect size of two proportions; h(.8, .5) = .6435.

    Raises:
        ValueError: a proportion outside [0, 1].
    """
    if not (0 <= p <= 1 and 0 <= q <= 1):
        raise ValueError(f"proportions lie in [0, 1], not {p} and {q}")
    return 2 * math.asin(math.sqrt(p)) - 2 * math.asin(math.sqrt(q))


def equivalent_samples(totals: ArrayLike, corrects: ArrayLike, rate: float) -> int | None:
    """Return the least K with mean pass@K >= ``rate``: the samples of the base model that a success rate is worth.

    Args:
        totals, corrects: ``(tasks,)``, samples and right ones of each task.
        rate: in [0, 1].

    Returns:
        K, at most the fewest samples of a task; ``None`` where even those do not reach the rate.
    """
    n, c = np.asarray(totals, dtype=np.int64), np.asarray(corrects, dtype=np.int64)
    low, high = 1, int(n.min())
    if float(np.mean(pass_at_k(n, c, high))) < rate - 1e-12:
        return None
    while low < high:  # pass@K grows with K
        middle = (low + high) // 2
        if float(np.mean(pass_at_k(n, c, middle))) >= rate - 1e-12:
            high = middle
        else:
            low = middle + 1
    return low


def partial_correlation(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float:
    """Return the correlation of x and y after a linear fit to ``given`` is taken off both; NaN if nothing is left.

    r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)).

    Raises:
        ValueError: not three rows of the same length, of three or more.
    """
    rows = [np.asarray(v, dtype=np.float64) for v in (x, y, given)]
    if len({r.shape for r in rows}) > 1 or rows[0].ndim != 1 or rows[0].size < 3:
        raise ValueError("a partial correlation needs three rows of the same three or more values")
    design = np.stack([np.ones_like(rows[2]), rows[2]], 1)
    left = [r - design @ np.linalg.lstsq(design, r, rcond=None)[0] for r in rows[:2]]
    size = [float(np.sqrt((r**2).sum())) for r in left]
    small = [1e-12 * max(1.0, float(np.abs(r).max())) * math.sqrt(r.size) for r in rows[:2]]
    if size[0] <= small[0] or size[1] <= small[1]:
        return math.nan
    return float(left[0] @ left[1] / (size[0] * size[1]))
