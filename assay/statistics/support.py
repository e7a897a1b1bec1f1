"""Which problems are within reach before training, and which after: preserved, lost, gained, out of reach of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.errors import UsageError
from assay.statistics.intervals import Interval, mean_interval, parts_interval, ratio_interval, signed_ratio_interval
from assay.statistics.pass_at_k import pass_curve, wilson

NOTHING = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Support:
    """Numbers of items (problems, or right answers of problems) by whether a sample of theirs was right.

    Expected numbers where they come from :func:`support_curve`.

    Source: The Invisible Leash (arXiv 2507.14843).

    Attributes:
        preserved: within reach before and after.
        lost: before only; the paper's shrinkage.
        gained: after only; the paper's expansion.
        out_of_reach: neither.
    """

    preserved: float
    lost: float
    gained: float
    out_of_reach: float

    @property
    def retention(self) -> float:
        """SRR = preserved / (preserved + lost); NaN where nothing was within reach before."""
        return _ratio(self.preserved, self.preserved + self.lost)

    @property
    def discovery(self) -> float:
        """NDR = gained / (preserved + gained); NaN where nothing is within reach after."""
        return _ratio(self.gained, self.preserved + self.gained)

    @property
    def dynamics(self) -> float:
        """SDS, the harmonic mean of retention and discovery; 0 if one of them is, NaN if one is."""
        return harmonic(self.retention, self.discovery)

    @property
    def change(self) -> float:
        """NSCR = (gained - lost) / (preserved + gained + lost): below 0 the support has shrunk."""
        return _ratio(self.gained - self.lost, self.preserved + self.gained + self.lost)


@dataclass(frozen=True, slots=True)
class SupportIntervals:
    """The counts, and the four rates with their 95% intervals; NaN throughout where a rate has no denominator."""

    counts: Support
    retention: Interval
    discovery: Interval
    dynamics: Interval
    change: Interval


def support(before: ArrayLike, after: ArrayLike) -> Support:
    """Count items by whether they are within reach.

    Args:
        before, after: ``(items,)`` truth values in the same order: was one of k samples right?

    Raises:
        UsageError: not as many of one as of the other.
    """
    first, second = _hits(before, after)
    return Support(
        float((first & second).sum()),
        float((first & ~second).sum()),
        float((~first & second).sum()),
        float((~first & ~second).sum()),
    )


def support_intervals(before: ArrayLike, after: ArrayLike, clusters: Sequence[int] | None = None) -> SupportIntervals:
    """Return :func:`support` with 95% intervals of its rates over items, which are taken as drawn independently.

    Retention and discovery are proportions (Wilson), the change a mean over the items within reach of either. The
    reciprocal of the dynamics is the mean of the reciprocals of retention and discovery, whose intervals are put
    together (:func:`~assay.statistics.intervals.parts_interval`).

    Args:
        before, after: as of :func:`support`.
        clusters: ``(items,)``: items with the same number were drawn together, as the answers of one problem are. The
            rates are then ratios of totals over clusters (:func:`~assay.statistics.intervals.ratio_interval`, with
            ``rare``).

    Raises:
        UsageError: lengths that differ.
    """
    first, second = _hits(before, after)
    counts = support(first, second)
    if clusters is not None and len(clusters) != len(first):
        raise UsageError(f"support needs a cluster for each of {len(first)} items, got {len(clusters)}")
    of = np.arange(len(first)) if clusters is None else np.asarray(clusters)
    retention, discovery = (
        _proportion(a & b, a, of if clusters is not None else None) for a, b in ((first, second), (second, ~first))
    )
    pulls = [
        _sums(a & b, of) - rate.value * _sums(a, of)
        for rate, a, b in ((retention, first, second), (discovery, second, ~first))
    ]
    dynamics = _mean_of_both(retention, discovery, _cosine(*pulls))
    union = first | second
    moved = second.astype(float) - first.astype(float)
    change = NOTHING
    if union.any():
        change = (
            mean_interval(moved[union], bounds=(-1, 1))
            if clusters is None or np.ptp(moved[union]) == 0
            else _change_over(second & ~first, first & ~second, union, of)
        )
    return SupportIntervals(counts, retention, discovery, dynamics, change)


def support_curve(
    before: tuple[ArrayLike, ArrayLike], after: tuple[ArrayLike, ArrayLike], ks: Sequence[int]
) -> list[Support]:
    """Return for each k the expected numbers if k samples were drawn from each model.

    With b_i and a_i the unbiased pass@k of problem i before and after, whose samples are independent: preserved
    sum b a, lost sum b (1 - a), gained sum (1 - b) a, out of reach sum (1 - b) (1 - a). At k = n it is the count.

    Args:
        before, after: samples and right samples of each problem, ``(problems,)`` each.
        ks: at most the samples of any problem.

    Raises:
        ValueError: as :func:`assay.statistics.pass_at_k.pass_curve`.
    """
    b, a = (pass_curve(total, right, ks) for total, right in (before, after))
    tables = (b * a, b * (1 - a), (1 - b) * a, (1 - b) * (1 - a))
    return [Support(*(float(t[:, j].sum()) for t in tables)) for j in range(len(ks))]


def least_reachable(k: int, doubt: float = 0.05) -> float:
    """Return the least probability of what is seen among ``k`` samples with confidence 1 - ``doubt``.

    1 - (1 - p)^k >= 1 - doubt holds iff p >= 1 - doubt^(1/k), about -ln(doubt) / k.

    Raises:
        UsageError: ``k < 1`` or ``doubt`` outside (0, 1).
    """
    if k < 1 or not 0 < doubt < 1:
        raise UsageError(f"least_reachable needs k >= 1 and doubt in (0, 1), got {k} and {doubt:g}")
    return -math.expm1(math.log(doubt) / k)


def harmonic(x: float, y: float) -> float:
    """Return 2 x y / (x + y); 0 if both are."""
    return 2 * x * y / (x + y) if x + y > 0 else x + y


def _hits(before: ArrayLike, after: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    first, second = np.asarray(before, dtype=bool).ravel(), np.asarray(after, dtype=bool).ravel()
    if first.shape != second.shape:
        raise UsageError(f"support compares the same items, got {first.size} before and {second.size} after")
    return first, second


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _mean_of_both(x: Interval, y: Interval, correlation: float) -> Interval:
    """Interval of the harmonic mean of two estimates in [0, 1] from their intervals."""
    value = harmonic(x.value, y.value)
    if not value > 0:
        # An estimate of 0 has no reciprocal; NaN stays NaN.
        return Interval(value, value, harmonic(x.high, y.high))
    # A sum is a difference from what is turned round, and so is the correlation.
    first = Interval(1 / x.value, 1 / x.high, 1 / max(x.low, 1e-12))
    second = Interval(-1 / y.value, -1 / max(y.low, 1e-12), -1 / y.high)
    total = parts_interval(first, second, -correlation)
    return Interval(value, 2 / total.high, 2 / total.low)


def _cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    size = math.sqrt(float((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / size if size > 0 else 0.0


def _proportion(part: NDArray[np.bool_], whole: NDArray[np.bool_], of: NDArray[np.int64] | None) -> Interval:
    count, total = int(part.sum()), int(whole.sum())
    if not total:
        return NOTHING
    if of is None:
        return Interval(count / total, *wilson(count, total))
    tops, bottoms = _sums(part & whole, of), _sums(whole, of)
    return ratio_interval(tops[bottoms > 0], bottoms[bottoms > 0], bounds=(0.0, 1.0), rare=True)


def _change_over(
    gained: NDArray[np.bool_], lost: NDArray[np.bool_], union: NDArray[np.bool_], of: NDArray[np.int64]
) -> Interval:
    """Gained less lost over the items in ``union``, with its interval over the clusters that have any."""
    up, down, all_ = (_sums(part, of) for part in (gained, lost, union))
    some = all_ > 0
    return signed_ratio_interval(up[some], down[some], all_[some], bounds=(-1, 1), rare=True)


def _sums(which: NDArray[np.bool_], of: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many items there are of each cluster."""
    _, index = np.unique(of, return_inverse=True)
    return np.asarray(np.bincount(index, weights=which.astype(float)), dtype=np.float64)
