"""Worths estimated from choices: of two (Bradley-Terry-Luce), or of several again and again (Plackett-Luce)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.stats import norm

from assay.statistics.intervals import Interval

Row = NDArray[np.float64]
STEPS = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """``winner`` was chosen of ``among``, ``count`` times; a preference that is not sure counts for less than one."""

    winner: int
    among: tuple[int, ...]
    count: float = 1.0


@dataclass(frozen=True, slots=True)
class Worths:
    """Estimated worths of items.

    Attributes:
        weights: ``(d,)`` w, of the least norm where several fit alike.
        features: ``(K, d)`` x.
        information: ``(d, d)`` Fisher's, with what a ridge adds to it.
    """

    weights: Row
    features: Row
    information: Row

    @property
    def values(self) -> Row:
        """``(K,)`` r_i = x_i w."""
        return np.asarray(self.features @ self.weights)

    @property
    def covariance(self) -> Row:
        """``(d, d)`` of the weights: the pseudo-inverse of the information."""
        return np.asarray(np.linalg.pinv(self.information, hermitian=True))

    def difference(self, i: int, j: int, confidence: float = 0.95) -> Interval:
        """Return r_i - r_j with its interval of :math:`z^T H^+ z`, z = x_i - x_j."""
        z = self.features[i] - self.features[j]
        value, reach = float(z @ self.weights), norm.ppf((1 + confidence) / 2) * self._deviations(z[None])[0]
        return Interval(value, value - float(reach), value + float(reach))

    @property
    def deviations(self) -> Row:
        """``(K,)`` standard deviations of the worths; without features of their own, against the mean of all."""
        return self._deviations(self.features)

    def pessimistic(self, kappa: float = 1.0) -> Row:
        """Return r_i - kappa sd_i."""
        return self.values - kappa * self.deviations

    def _deviations(self, z: Row) -> Row:
        return np.asarray(np.sqrt(np.einsum("kd,de,ke->k", z, self.covariance, z)))


def fit_choices(choices: Sequence[Choice], items: int | ArrayLike, ridge: float = 0.0) -> Worths:
    """Maximise sum of count log p(winner | among) - ridge / 2 |w|^2,   p(i | S) = exp(r_i) / sum_{j in S} exp(r_j).

        gradient  sum n (x_winner - E_p x),     information  H = sum n Cov_p x + ridge

    by Newton's method. Of pairs H = sum n p (1 - p) z z^T, z = x_i - x_j.

    Args:
        choices: who was chosen.
        items: how many, each with a worth of its own, which sum to 0; or ``(K, d)`` features that worths are linear in.
        ridge: above 0 there is an estimate whatever was chosen: the mode under a normal prior.

    Raises:
        ValueError: no estimate exists without a ridge, as the choices fit better and better the larger some worths are;
            with a worth for each item, where some items never lost to the others.

    Source: Bradley and Terry (1952), Luce (1959), Plackett (1975); the linear one is the multinomial logit.
    """
    x = np.eye(items) if isinstance(items, int) else np.asarray(items, dtype=np.float64)
    if ridge == 0 and separated(choices, x):
        raise ValueError(
            "the worths are not bounded by these choices: some items never lost to the others; ask for more choices "
            "or take a ridge above 0"
        )
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        value, gradient, information = _terms(choices, x, w, ridge)
        step = np.linalg.pinv(information, hermitian=True) @ gradient
        if float(gradient @ step) < 1e-15:  # twice what is still to be gained
            break
        size = 1.0
        while _terms(choices, x, w + size * step, ridge)[0] < value - 1e-12:  # far from the mode it may overshoot
            size /= 2
        w = w + size * step
    return Worths(w, x, _terms(choices, x, w, ridge)[2])


def _terms(choices: Sequence[Choice], x: Row, w: Row, ridge: float) -> tuple[float, Row, Row]:
    """Log-likelihood, gradient and information."""
    value, gradient = -ridge / 2 * float(w @ w), -ridge * w
    information = ridge * np.eye(len(w))
    for choice in choices:
        z = x[list(choice.among)]
        r = z @ w
        top = r.max()
        p = np.exp(r - top)
        total = p.sum()
        p /= total
        mean = p @ z
        value += choice.count * float(x[choice.winner] @ w - top - np.log(total))
        gradient = gradient + choice.count * (x[choice.winner] - mean)
        information = information + choice.count * ((z.T * p) @ z - np.outer(mean, mean))
    return value, gradient, information


def separated(choices: Sequence[Choice], features: Row) -> bool:
    """Whether some weights would put no winner below what it was chosen over, and one above: then none fit best.

    With a worth for each item: whether the graph of who was chosen over whom is not strongly connected.

    Source: Albert and Anderson (1984), by a linear programme.
    """
    gaps = np.array(
        [features[c.winner] - features[j] for c in choices if c.count > 0 for j in c.among if j != c.winner]
    )
    if not len(gaps):
        return False
    found = linprog(
        -gaps.sum(0), A_ub=np.vstack([-gaps, gaps]), b_ub=np.repeat([0.0, 1.0], len(gaps)), bounds=(None, None)
    )
    return bool(-found.fun > 1e-7)


def pairs_of(wins: ArrayLike) -> list[Choice]:
    """Return the choices of a table ``(K, K)`` of how often i was preferred to j."""
    table = np.asarray(wins, dtype=np.float64)
    return [Choice(int(i), (int(i), int(j)), float(table[i, j])) for i, j in np.argwhere(table > 0)]


def stages_of(ranking: Sequence[int], count: float = 1.0) -> list[Choice]:
    """Return the choices that a ranking, best first, is to Plackett and Luce: the best of all, of the rest, ..."""
    return [Choice(ranking[k], tuple(ranking[k:]), count) for k in range(len(ranking) - 1)]


def most_informative(fitted: Worths, pairs: Sequence[tuple[int, int]], ridge: float = 1e-6) -> int:
    """Return which pair to ask about next (D-optimal): the largest log det(H + p (1 - p) z z^T), the first of equals.

    By the matrix determinant lemma, the largest p (1 - p) z^T H^-1 z.

    Args:
        fitted: what is known so far.
        pairs: to choose from.
        ridge: added to H, so that what nothing is known of comes first.
    """
    z = np.array([fitted.features[i] - fitted.features[j] for i, j in pairs])
    p = 1 / (1 + np.exp(-z @ fitted.weights))
    inverse = np.linalg.inv(fitted.information + ridge * np.eye(len(fitted.weights)))
    gain = p * (1 - p) * np.einsum("kd,de,ke->k", z, inverse, z)
    return int(np.flatnonzero(gain >= gain.max() * (1 - 1e-9))[0])
