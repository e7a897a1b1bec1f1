"""Whether a scorer finds one right solution among several wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.statistics.intervals import Interval, mean_interval

Choice = tuple[Sequence[float], Sequence[float]]
"""Of a problem: the scores of what is right (one or more), and of what is wrong (one or more)."""


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """How often the right solution is found. Intervals are for 95 %, over problems.

    Attributes:
        problems: how many.
        wrong: solutions that a right one is put against, on average.
        strict: share of problems with min(right) > max(wrong).
        tied: with min(right) >= max(wrong).
        mrr: mean of 1 / rank of the best right solution, below every wrong one of its score.
    """

    problems: int
    wrong: float
    strict: Interval
    tied: Interval
    mrr: Interval


def one_of_many(choices: Sequence[Choice]) -> OneOfMany:
    """Return how often scores tell what is right from everything that is wrong.

    Source: RewardMATH (arXiv 2410.01729) and its authors' code, with one right and nine wrong solutions of a problem.

    Raises:
        ValueError: no problem, or one without scores of either kind.
    """
    if not choices or not all(right and wrong for right, wrong in choices):
        raise ValueError("one of many: there must be problems, each with scores of what is right and what is wrong")
    strict = [float(min(right) > max(wrong)) for right, wrong in choices]
    tied = [float(min(right) >= max(wrong)) for right, wrong in choices]
    ranks = [1 / (1 + sum(x >= max(right) for x in wrong)) for right, wrong in choices]
    count = sum(len(wrong) for _, wrong in choices) / len(choices)
    return OneOfMany(len(choices), count, *(mean_interval(x, bounds=(0, 1)) for x in (strict, tied, ranks)))


def choice_of_wins(wins: Sequence[bool]) -> Choice:
    """Return scores for a judge of pairs, who compared a right solution with each wrong one.

    The right one scores 1 + its wins; a wrong one 1 where it lost, and more than that can be where it did not, so that
    one lost comparison is enough not to be the first.

    Args:
        wins: whether the right one was preferred.

    Source: the code of RewardMATH (arXiv 2410.01729).
    """
    return [1.0 + sum(wins)], [1.0 if won else len(wins) + 2.0 for won in wins]
