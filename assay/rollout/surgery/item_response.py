"""How likely a problem is solved by how much of its solution is shown: a logistic curve of three parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

STEEPEST = 50.0
"""The largest slope that a fit returns."""
FIRST = (8.0, 0.5, 0.05)
"""Where a fit begins: a, b, c."""
FINE = 1e-4
"""Relative changes of parameters, and of the sum of squares, below which a fit ends."""


@dataclass(frozen=True, slots=True)
class Curve:
    """f(p) = c + (1 - c) / (1 + exp(-a (p - b))): the chance of success where the share p in [0, 1] is shown.

    Attributes:
        a: slope, above 0.
        b: the share at which f is half way between c and 1.
        c: chance where nothing helps, in [0, 1].
    """

    a: float
    b: float
    c: float

    def __call__(self, share: float) -> float:
        return float(_curve(np.array(share), self.a, self.b, self.c))

    def share_for(self, chance: float) -> float:
        """Return the share in [0, 1] at which the chance is nearest: b - ln((1 - c) / (chance - c) - 1) / a,
        clipped."""
        if chance <= self.c:
            return 0.0
        return float(np.clip(self.b - math.log((1 - self.c) / (chance - self.c) - 1) / self.a, 0.0, 1.0))


def fit(shares: Sequence[float], accuracies: Sequence[float]) -> Curve:
    """Return the curve with the least sum of squares of f(p) - accuracy over the different shares p.

    Of rounds with the same share the mean accuracy counts, once. Nothing right where nothing is shown and all right
    where all is shown are two more points, unless that was tried. 0 < a <= 50, and b and c are in [0, 1]; the trust
    region reflective algorithm stays between these.

    Args:
        shares: that were shown, a round each.
        accuracies: what share of responses was right.

    Source: SEELE (arXiv 2509.06923), equation 13 and algorithm 1.
    """
    found: dict[float, list[float]] = {}
    for share, accuracy in zip(shares, accuracies, strict=True):
        found.setdefault(float(share), []).append(accuracy)
    for end in (0.0, 1.0):
        found.setdefault(end, [end])
    p, y = np.array(list(found)), np.array([np.mean(values) for values in found.values()])
    bounds = ([1e-3, 0.0, 0.0], [STEEPEST, 1.0, 1.0])
    a, b, c = least_squares(lambda x: _curve(p, *x) - y, FIRST, bounds=bounds, xtol=FINE, ftol=FINE).x
    return Curve(float(a), float(b), float(c))


def _curve(p: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    return c + (1 - c) * 0.5 * (1 + np.tanh(0.5 * a * (p - b)))
