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
        odds: odds ratio; infinite or NaN where a cell is empty.
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
    odds = a * d / (b * c) if b * c else float("inf") if a * d else float("nan")
    (e, f), (g, h) = expected.tolist()
    return Independence(((a, b), (c, d)), ((e, f), (g, h)), float(chi2), float(p), exact, odds)
