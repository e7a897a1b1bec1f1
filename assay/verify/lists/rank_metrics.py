"""Measures of a ranking against graded relevance or another order.

A ranking is a list of items, best first. An item that occurs again counts where it first stands; its repetitions keep
their places and are worth nothing, so neither repeating an item nor adding unknown ones helps.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal

Gain = Literal["linear", "exponential"]


def first_gains(ranking: Sequence[Hashable], gains: Mapping[Any, float]) -> list[float]:
    """Return the gain at each place: that of an item where it first stands, else 0."""
    seen: set[Hashable] = set()
    worth = []
    for item in ranking:
        worth.append(0.0 if item in seen else gains.get(item, 0.0))
        seen.add(item)
    return worth


def dcg(gains: Sequence[float], k: int | None = None, gain: Gain = "linear") -> float:
    """sum over places i = 1..k of g_i / log2(i + 1), where g is the grade (``linear``) or 2^grade - 1."""
    worth = [2.0**g - 1 if gain == "exponential" else g for g in gains[:k]]
    return math.fsum(g / math.log2(i + 2) for i, g in enumerate(worth))


def ndcg(
    ranking: Sequence[Hashable], grades: Mapping[Any, float], k: int | None = None, gain: Gain = "linear"
) -> float:
    """DCG@k divided by that of the best order of all graded items; 0 where every grade is 0. Grades are at least 0."""
    best = dcg(sorted(grades.values(), reverse=True), k, gain)
    return min(dcg(first_gains(ranking, grades), k, gain) / best, 1.0) if best > 0 else 0.0


def reciprocal_rank(ranking: Sequence[Hashable], relevant: Collection[Hashable], k: int | None = None) -> float:
    """1 / the place of the first relevant item among the first k, 0 without any. Its mean over queries is MRR."""
    for place, item in enumerate(ranking[:k], 1):
        if item in relevant:
            return 1 / place
    return 0.0


def average_precision(ranking: Sequence[Hashable], relevant: Collection[Hashable], k: int | None = None) -> float:
    """(1 / min(R, k)) sum over places <= k of precision there, where a relevant item first stands. Its mean is MAP.

    R is the number of relevant items.
    """
    hits = first_gains(ranking, dict.fromkeys(relevant, 1.0))[:k]
    found, total = 0, 0.0
    for place, hit in enumerate(hits, 1):
        if hit:
            found += 1
            total += found / place
    possible = min(len(set(relevant)), k if k is not None else len(set(relevant)))
    return total / possible if possible else 0.0


def recall_at(ranking: Sequence[Hashable], relevant: Collection[Hashable], k: int | None = None) -> float:
    """Share of the relevant items among the first k places."""
    wanted = set(relevant)
    return len(wanted & set(ranking[:k])) / len(wanted) if wanted else 0.0


def average_overlap(ranking: Sequence[Hashable], order: Sequence[Hashable], p: float = 1.0) -> float:
    """Rank-biased overlap of two rankings, truncated at n = the longer length and divided by its maximum there.

    With A_d = the share of items that the first d places of both have, sum_d p^(d-1) A_d / sum_d p^(d-1) over
    d = 1 ... n: 1 for equal rankings, whatever p in (0, 1]. For p = 1 it is the average overlap, (1/n) sum_d A_d; for
    p < 1 the truncated sum (1 - p) sum_d p^(d-1) A_d divided by 1 - p^n, the most it can reach. It is not the
    extrapolated RBO, which supposes that agreement goes on beyond the lists: these are whole.

    Source: Webber, Moffat and Zobel, A Similarity Measure for Indefinite Rankings, 2010.
    """
    n = max(len(ranking), len(order))
    left: set[Hashable] = set()
    right: set[Hashable] = set()
    common, total, most, weight = 0, 0.0, 0.0, 1.0
    for d in range(n):
        for sequence, mine, other in ((ranking, left, right), (order, right, left)):
            if d < len(sequence) and sequence[d] not in mine:
                mine.add(sequence[d])
                common += sequence[d] in other
        total += weight * (common / (d + 1))
        most += weight
        weight *= p
    return total / most if n else 1.0


def places(ranking: Sequence[Hashable], order: Sequence[Hashable]) -> list[int]:
    """Return the place in ``ranking`` of each item of ``order``; those missing share the place after the last."""
    first: dict[Hashable, int] = {}
    for place, item in enumerate(ranking):
        first.setdefault(item, place)
    return [first.get(item, len(ranking)) for item in order]


def kendall_tau(ranking: Sequence[Hashable], order: Sequence[Hashable]) -> float:
    """Kendall's tau-b between the places of the items of ``order`` there and in ``ranking``, in [-1, 1].

    Missing items are tied behind the last place; -1 where all are missing. 1 for a single item that is there.
    """
    from scipy.stats import kendalltau

    mine = places(ranking, order)
    if len(set(mine)) < 2:
        return _degenerate(mine, ranking)
    return float(kendalltau(range(len(mine)), mine).statistic)


def spearman_rho(ranking: Sequence[Hashable], order: Sequence[Hashable]) -> float:
    """Spearman's rank correlation between the same places as in :func:`kendall_tau`, in [-1, 1]."""
    from scipy.stats import spearmanr

    mine = places(ranking, order)
    if len(set(mine)) < 2:
        return _degenerate(mine, ranking)
    return float(spearmanr(range(len(mine)), mine).statistic)


def _degenerate(mine: list[int], ranking: Sequence[Hashable]) -> float:
    # The items of an order are distinct, so several share a place only where all are missing.
    return 1.0 if all(place < len(ranking) for place in mine) else -1.0


def ordered_overlap(ranking: Sequence[Hashable], order: Sequence[Hashable]) -> float:
    """2 L / (m + n), where L is the length of the longest common subsequence of the two; 1 for two empty ones."""
    m, n = len(ranking), len(order)
    if m + n == 0:
        return 1.0
    # Hunt and Szymanski: the longest increasing chain of pairs of equal items.
    at: dict[Hashable, list[int]] = {}
    for j, item in enumerate(order):
        at.setdefault(item, []).append(j)
    ends: list[int] = []
    for item in ranking:
        for j in reversed(at.get(item, ())):
            where = bisect_left(ends, j)
            ends[where : where + 1] = [j]
    return 2 * len(ends) / (m + n)
