"""Unbiased pass@k, and Wilson's interval for a proportion."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    return pass_curve(total, correct, [k])[:, 0].reshape(np.broadcast(np.asarray(total), np.asarray(correct)).shape)


def pass_curve(total: ArrayLike, correct: ArrayLike, ks: Sequence[int]) -> NDArray[np.float64]:
    """Return :func:`pass_at_k` for several k at once, ``(tasks, len(ks))``, in one sweep over i < max k.

    Raises:
        ValueError: as :func:`pass_at_k`.
    """
    n, c = (x.ravel() for x in np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (total, correct))))
    if min(ks, default=1) < 1:
        raise ValueError(f"pass@k needs k >= 1, got {min(ks)}")
    most = max(ks, default=0)
    if (n < most).any():
        raise ValueError(f"pass@{most} needs at least {most} judged samples per task, got {int(n.min())}")
    if ((c < 0) | (c > n)).any():
        raise ValueError("correct must lie in [0, total]")
    # Many tasks have the same counts: each pair is worked out once.
    pairs, where = np.unique(np.stack([n, c], 1), axis=0, return_inverse=True)
    n, c = pairs[:, 0], pairs[:, 1]
    out = np.empty((len(n), len(ks)))
    log_all_wrong = np.zeros(len(n))
    at = {k: j for j, k in enumerate(ks)}
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(most):
            # Once no wrong sample is left one of the k is right for certain: log 0 from there on.
            log_all_wrong += np.log1p(np.where(n - i > c, -c / (n - i), -1.0))
            if i + 1 in at:
                out[:, at[i + 1]] = np.abs(np.expm1(log_all_wrong))
    for j, k in enumerate(ks):  # a k asked for twice
        out[:, j] = out[:, at[k]]
    return out[where.ravel()]


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
