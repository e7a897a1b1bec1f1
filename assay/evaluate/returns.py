"""How the returns of a policy are spread: heterogeneity, anti-concentration, and what a gap does with the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.records.evaluation import Evaluation
from assay.statistics.intervals import Interval, paired_interval


@dataclass(frozen=True, slots=True)
class Spread:
    """The returns of one problem.

    Attributes:
        mean: of the returns.
        sigma: their standard deviation (n - 1), the heterogeneity of the policy at this problem. A response is drawn
            token by token and nothing else is random, so that by the law of total variance
            sigma^2 = sum over tokens h of E[Var_{a ~ pi}(Q_h(s_h, a))].
        above: share of returns of at least mean + sigma sqrt(eps): large where policy gradient or search from this
            policy has something to find (anti-concentration).
        counts, edges: histogram of the returns.
        samples: how many.
    """

    mean: float
    sigma: float
    above: float
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    samples: int


def spread(returns: ArrayLike, eps: float = 0.5, bins: int = 10, top: float | None = None) -> Spread:
    """Describe the returns of one problem.

    Source: "Scaling Test-Time Compute Without Verification or RL is Suboptimal" (arXiv 2502.12118), its definitions of
    heterogeneity and anti-concentration.

    Args:
        returns: ``(samples,)``.
        eps: see :class:`Spread`.
        bins: of the histogram, over [0, ``top``] or, where that is left out, over the range of the returns.
        top: largest possible return, the budget.

    Raises:
        ValueError: fewer than two returns, some not finite, or eps below 0.
    """
    x = np.asarray(returns, dtype=np.float64)
    if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all() or eps < 0:
        raise ValueError(f"a spread is of two or more finite returns and eps >= 0, got shape {x.shape} and {eps:g}")
    mean, sigma = float(x.mean()), float(x.std(ddof=1))
    counts, edges = np.histogram(x, bins=bins, range=None if top is None else (0.0, top))
    # Equal returns are at the threshold whatever rounding makes of their mean.
    above = float((x >= mean + sigma * np.sqrt(eps) - 1e-12 * max(1.0, abs(mean))).mean())
    return Spread(mean, sigma, above, tuple(counts.tolist()), tuple(edges.tolist()), len(x))


def bilevel_returns(lengths: ArrayLike, right: ArrayLike, horizon: float) -> NDArray[np.float64]:
    """Return H - T for a right response of T <= H tokens, else 0: a reward of 1 for each token after the success.

    Args:
        lengths: ``(samples,)`` tokens up to the right answer.
        right: ``(samples,)``.
        horizon: H, the budget in tokens.
    """
    t, good = np.asarray(lengths, dtype=np.float64), np.asarray(right, dtype=bool)
    return np.where(good, np.maximum(horizon - t, 0.0), 0.0)


def returns_of(evaluation: Evaluation, horizon: float) -> dict[str, NDArray[np.float64]]:
    """Return by task the :func:`bilevel_returns` of an evaluation's samples, abstentions left out."""
    out = {}
    for task, rows in evaluation.by_task().items():
        known = [s for s in rows if s.passed is not None]
        if known:
            out[task] = bilevel_returns([s.length for s in known], [bool(s.passed) for s in known], horizon)
    return out


def gaps(better: Mapping[float, ArrayLike], other: Mapping[float, ArrayLike]) -> dict[float, Interval]:
    """Return by budget the mean difference of returns with its 95% interval.

    Args:
        better, other: by budget the mean returns ``(problems,)`` (or ``(seeds,)``), paired.

    Raises:
        ValueError: other budgets, or not as many problems.
    """
    if set(better) != set(other):
        raise ValueError(f"the gap needs the same budgets of both, got {sorted(better)} and {sorted(other)}")
    return {h: paired_interval(other[h], better[h]) for h in sorted(better)}


def growth(found: Mapping[float, Interval]) -> float | None:
    """Return b of the fit gap ~ H^b by least squares of logarithms; ``None`` unless two gaps or more, all above 0."""
    values = [(h, g.value) for h, g in found.items()]
    if len(values) < 2 or min(v for _, v in values) <= 0:
        return None
    h, v = np.log(np.asarray(values, dtype=np.float64)).T
    return float(np.polyfit(h, v, 1)[0])
