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
    """Return Spearman's correlation of x and y with ``given`` held fixed; NaN if nothing is left of either.

    Of ranks, equal values having their mean rank: r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)), the
    correlation of what a linear fit to the ranks of ``given`` leaves of both.

    Source: surprisal-guided selection (arXiv 2602.07670), its length-controlled analysis.

    Raises:
        ValueError: not three rows of the same length, of three or more.
    """
    from scipy.stats import rankdata

    rows = [np.asarray(v, dtype=np.float64) for v in (x, y, given)]
    if len({r.shape for r in rows}) > 1 or rows[0].ndim != 1 or rows[0].size < 3:
        raise ValueError("a partial correlation needs three rows of the same three or more values")
    ranks = [rankdata(r) - (r.size + 1) / 2 for r in rows]
    size = ranks[2] @ ranks[2]
    left = [r - (r @ ranks[2] / size if size else 0.0) * ranks[2] for r in ranks[:2]]
    spread = [float(r @ r) for r in left]
    return float(left[0] @ left[1] / math.sqrt(spread[0] * spread[1])) if min(spread) > 1e-9 else math.nan
