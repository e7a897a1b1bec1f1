"""How likely a problem is solved by how much of its solution is shown: a logistic curve of three parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class Curve:
    """f(p) = c + (1 - c) / (1 + exp(-a (p - b))): the chance of success where the share p in [0, 1] is shown.

    Attributes:
        a: slope, above 0.
        b: the share at which f is half way between c and 1.
        c: chance where nothing helps, in [0, 1/2).
    """

    a: float
    b: float
    c: float

    def __call__(self, share: float) -> float:
        return float(self.c + (1 - self.c) * _sigmoid(self.a * (share - self.b)))

    def share_for(self, chance: float) -> float:
        """Return the share in [0, 1] at which the chance is nearest: b - ln((1 - c) / (chance - c) - 1) / a,
        clipped."""
        if chance <= self.c:
            return 0.0
        return float(np.clip(self.b - math.log((1 - self.c) / (chance - self.c) - 1) / self.a, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Prior:
    """What is thought of a curve before anything was tried: log a, b and logit(2 c) are normal, independently.

    Attributes:
        a, b, c: where the curve is without data.
        spread_a, spread_b, spread_c: standard deviations, of log a, b and logit(2 c).

    Raises:
        UsageError: ``a`` or a deviation not above 0, or ``c`` outside (0, 1/2).
    """

    a: float = 8.0
    b: float = 0.5
    c: float = 0.05
    spread_a: float = 0.5
    spread_b: float = 0.5
    spread_c: float = 1.0

    def __post_init__(self) -> None:
        if min(self.a, self.spread_a, self.spread_b, self.spread_c) <= 0 or not 0 < self.c < 0.5:
            raise UsageError(
                f"prior of a curve: a {self.a:g} and the spreads must be above 0, c {self.c:g} in (0, 1/2)"
            )

    def fit(self, shares: Sequence[float], right: Sequence[int], tried: Sequence[int]) -> Curve:
        """Return the curve that maximises the binomial likelihood times the prior.

        Args:
            shares: that were shown.
            right, tried: successes and trials at each.
        """
        p, k, n = (np.asarray(x, dtype=np.float64) for x in (shares, right, tried))
        at = np.array([math.log(self.a), self.b, _logit(2 * self.c)])
        spread = np.array([self.spread_a, self.spread_b, self.spread_c])

        def loss(z: np.ndarray) -> float:
            x = at + spread * z
            c = 0.5 * _sigmoid(x[2])
            f = np.clip(c + (1 - c) * _sigmoid(np.exp(x[0]) * (p - x[1])), 1e-12, 1 - 1e-12)
            return float(0.5 * z @ z - (k * np.log(f) + (n - k) * np.log1p(-f)).sum())

        found = at + spread * minimize(loss, np.zeros(3), method="Nelder-Mead", options=FINE).x
        return Curve(math.exp(found[0]), float(found[1]), float(0.5 * _sigmoid(found[2])))


FINE = {"xatol": 1e-3, "fatol": 1e-4}
"""How near the optimum a fit ends, in standard deviations of the prior and in nats."""


def _sigmoid(x: np.ndarray | float) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(x)))


def _logit(x: float) -> float:
    return math.log(x / (1 - x))
