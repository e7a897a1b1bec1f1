"""The exact test of paired differences that assumes no distribution: under no effect, every sign is a coin's."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

MOST = 16
"""Differences of which all patterns of signs are tried, 2^16; of more, that many are drawn."""


def sign_flip(differences: ArrayLike) -> float:
    """Return the two-sided p-value of Fisher's randomisation test for paired differences (Fisher 1935).

    The share of the 2^n patterns of signs whose mean is at least as far from 0 as that seen; with n differences it is
    2^(1 - n) at least, 1/16 for five, so fewer than six never reach 5%. Zeros stay where they are. Of more than
    :data:`MOST` differences, (1 + hits) / (1 + draws) over patterns drawn with a fixed seed.

    Args:
        differences: ``(n,)``, one or more.

    Raises:
        ValueError: none, or one that is not finite.
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or not len(d) or not np.isfinite(d).all():
        raise ValueError("a sign-flip test needs one or more finite differences")
    seen = abs(d.sum()) * (1 - 1e-12)  # equal sums may differ in their last bit
    if len(d) <= MOST:
        signs = 1 - 2 * (np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1)
        return float((abs(signs @ d) >= seen).mean())
    signs = np.random.default_rng(0).choice((-1, 1), size=(2**MOST, len(d)))
    return float((1 + (abs(signs @ d) >= seen).sum()) / (1 + len(signs)))
