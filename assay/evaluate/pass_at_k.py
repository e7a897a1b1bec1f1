"""Unbiased pass@k, and Wilson's interval for a proportion."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(total: ArrayLike, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    """Probability that at least one of ``k`` samples of a task is right, estimated from ``total`` samples of it.

    ``1 - C(n - c, k) / C(n, k) = 1 - prod_{i<k} (1 - c / (n - i))``, unbiased for every k <= n
    (Chen et al. 2021, arXiv 2107.03374, eq. 1). The product is summed in logarithms, so that it neither overflows nor
    loses the digits of a small probability.

    Args:
        total: ``(tasks,)`` or scalar, samples judged per task; samples whose verifier abstained do not count.
        correct: as ``total``, how many of them are right.
        k: samples one may draw, at least 1.

    Returns:
        ``(tasks,)`` float64 in [0, 1].

    Raises:
        ValueError: ``k < 1``, ``k > total`` for some task, or ``correct`` outside ``[0, total]``.
    """
    n, c = np.broadcast_arrays(np.asarray(total, dtype=np.float64), np.asarray(correct, dtype=np.float64))
    if k < 1:
        raise ValueError(f"pass@k needs k >= 1, got {k}")
    if (n < k).any():
        raise ValueError(f"pass@{k} needs at least {k} judged samples per task, got {int(n.min())}")
    if ((c < 0) | (c > n)).any():
        raise ValueError("correct must lie in [0, total]")
    certain = c > n - k
    c = np.where(certain, 0.0, c)
    log_all_wrong = np.zeros(n.shape)
    for i in range(k):
        log_all_wrong += np.log1p(-c / (n - i))
    return np.where(certain, 1.0, np.abs(np.expm1(log_all_wrong)))


def wilson(successes: float, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval ``(low, high)`` for a proportion.

    ``(p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)``, p = successes / trials, z the normal quantile.

    Raises:
        ValueError: no trials, or successes outside ``[0, trials]``.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"a proportion needs 0 <= successes <= trials and trials >= 1, got {successes} of {trials}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p, shrink = successes / trials, 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / shrink
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / shrink
    # At 0 and 1 the bound is exact; rounding must not move it inside.
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == trials else centre + half)
