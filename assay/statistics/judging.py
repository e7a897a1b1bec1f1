"""How good a model is as a judge of solutions, its own among them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.statistics.intervals import Interval, ratio_interval


@dataclass(frozen=True, slots=True)
class Precision:
    """Of ``judged`` solutions ``accepted`` were called right, and ``share`` is how many of those were.

    Its interval is for 95 %, over tasks. ``share`` is ``None`` where nothing was accepted.
    """

    judged: int
    accepted: int
    right: int
    share: Interval | None


def precision_of_verdicts(
    scores: Sequence[float | None],
    right: Sequence[bool],
    tasks: Sequence[Hashable],
    groups: Sequence[Hashable] | None = None,
    threshold: float = 0.5,
) -> dict[Hashable, Precision]:
    """Return by group, such as the difficulty, how far a positive verdict can be believed.

    Solutions of a task are right or wrong together, and are a ratio of totals over the tasks of which some were
    accepted (:func:`~assay.statistics.intervals.ratio_interval`); one of each, and the interval is nearly Wilson's.

    Args:
        scores: of each solution; above ``threshold`` it is accepted. ``None`` where there is no verdict; left out.
        right: whether it is.
        tasks: that it is a solution of.
        groups: of each solution; one group ``all`` if left out.
        threshold: see above.

    Raises:
        ValueError: lengths that differ.
    """
    names = ["all"] * len(scores) if groups is None else list(groups)
    rows = [row for row in zip(names, tasks, scores, right, strict=True) if row[2] is not None]
    out: dict[Hashable, Precision] = {}
    for group in dict.fromkeys(row[0] for row in rows):
        mine = [(t, s, r) for g, t, s, r in rows if g == group]
        taken: dict[Hashable, list[bool]] = {}
        for task, score, good in mine:
            if score is not None and score > threshold:
                taken.setdefault(task, []).append(bool(good))
        hits, sizes = [sum(v) for v in taken.values()], [len(v) for v in taken.values()]
        share = ratio_interval(hits, sizes, bounds=(0, 1)) if taken else None
        out[group] = Precision(len(mine), sum(sizes), sum(hits), share)
    return out


@dataclass(frozen=True, slots=True)
class Independence:
    """Whether solving and judging go together.

    Attributes:
        table: counts, rows solved and not solved, columns judged right and judged wrong.
        expected: counts if they were independent.
        chi2, p: Pearson's statistic without continuity correction, one degree of freedom, and its p-value.
        exact: Fisher's p-value, to be preferred where an expected count is below 5.
        odds: odds ratio; infinite where a cell of those that disagree is empty.
    """

    table: tuple[tuple[int, int], tuple[int, int]]
    expected: tuple[tuple[float, float], tuple[float, float]]
    chi2: float
    p: float
    exact: float
    odds: float


def independence(solved: Sequence[bool], judged: Sequence[bool]) -> Independence:
    """Test whether a model judges solutions of those problems better that it solves itself.

    Args:
        solved: for each problem, whether the model solves it.
        judged: whether it judges a solution of it rightly.

    Raises:
        ValueError: lengths that differ, or a margin of zero, with which there is nothing to test.
    """
    pairs = list(zip(map(bool, solved), map(bool, judged), strict=True))
    table = np.array([[pairs.count((a, b)) for b in (True, False)] for a in (True, False)])
    if 0 in table.sum(0) or 0 in table.sum(1):
        raise ValueError(f"independence cannot be tested where everything, or nothing, is solved or judged: {table}")
    from scipy import stats

    chi2, p, _, expected = stats.chi2_contingency(table, correction=False)
    exact = float(stats.fisher_exact(table).pvalue)
    (a, b), (c, d) = table.tolist()
    odds = a * d / (b * c) if b * c else float("inf")  # of two empty cells a margin would be 0
    (e, f), (g, h) = expected.tolist()
    return Independence(((a, b), (c, d)), ((e, f), (g, h)), float(chi2), float(p), exact, odds)


def average_precision(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Area under precision against recall, AP = sum_n (R_n - R_{n-1}) P_n over the thresholds that scores make.

    Equal scores are taken together. NaN where nothing is positive; of random scores it is about the share of positives.

    Args:
        scores: larger for what is more likely positive.
        positive: whether it is.

    Raises:
        ValueError: lengths that differ, or a score that is no finite number.
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if s.shape != y.shape or not np.isfinite(s).all():
        raise ValueError(f"{len(s)} scores for {len(y)} labels; give a finite one for each")
    if not y.any():
        return float("nan")
    order = np.argsort(-s, kind="stable")
    last = np.append(np.diff(s[order]) != 0, True)
    found = np.cumsum(y[order])[last]
    precision, recall = found / (np.flatnonzero(last) + 1), found / y.sum()
    return float((np.diff(recall, prepend=0.0) * precision).sum())


@dataclass(frozen=True, slots=True)
class Consistency:
    """How far repeated judgments of the same thing agree, means over the things judged twice or more; NaN without any.

    Attributes:
        pairwise: chance that two judgments of a thing are the same.
        majority: share of judgments that are the commoner one.
    """

    pairwise: float
    majority: float


def self_consistency(judgments: Sequence[Sequence[bool | None]]) -> Consistency:
    """Return how far a judge agrees with itself.

        pairwise = mean over things of (k (k - 1) + (n - k) (n - k - 1)) / (n (n - 1));  majority of max(k, n - k) / n

    with n readable judgments of a thing, k of them positive; what has fewer than two says nothing of consistency.

    Args:
        judgments: of each thing, repeated; ``None`` for one that could not be read.

    Source: "Do We Need Frontier Models to Verify Mathematical Proofs?" (arXiv 2604.02450).
    """
    pairs, most = [], []
    for row in judgments:
        known = [j for j in row if j is not None]
        n, k = len(known), sum(known)
        if n > 1:
            pairs.append((k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1)))
            most.append(max(k, n - k) / n)
    return (
        Consistency(float(np.mean(pairs)), float(np.mean(most))) if pairs else Consistency(float("nan"), float("nan"))
    )


@dataclass(frozen=True, slots=True)
class Located:
    """How often the first wrong step of a solution was named.

    Attributes:
        wrong: share of the solutions with an error whose first wrong step was named exactly; NaN without any.
        right: share of those without one that were said to have none; NaN without any.
        f1: harmonic mean of both.
    """

    wrong: float
    right: float
    f1: float


def located(found: Sequence[int | None], truth: Sequence[int]) -> Located:
    """Return how often judges of steps are right about the first wrong one, -1 for none; ``None`` names no step.

        F1 = 2 a b / (a + b),   a of wrong solutions, b of right ones

    Source: ProcessBench (arXiv 2412.06559).

    Raises:
        ValueError: lengths that differ.
    """
    pairs = list(zip(found, truth, strict=True))
    wrong = [f == t for f, t in pairs if t >= 0]
    right = [f == t for f, t in pairs if t < 0]
    a, b = (float(np.mean(x)) if x else float("nan") for x in (wrong, right))
    return Located(a, b, 2 * a * b / (a + b) if a + b > 0 else a + b)
