"""S128: what a reward model is worth for mathematics: one right solution among nine wrong ones, and the best of n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.sampling.best_of_n import BestOfN
from assay.inference.scoring.scorers import BySteps, Reduce
from assay.inference.supervision.one_of_many import OneOfMany, choice_of_wins, one_of_many
from assay.rewards.judges.pair_judge import PairJudge
from assay.signals.steps import Steps
from assay.statistics.at_k import best_of_k

WRONG = 9
"""Wrong solutions that the right one of a problem is put against."""


@paper(
    "S128",
    "RewardMATH",
    arxiv="2410.01729",
    seams=["inference", "evaluate"],
    essentials={
        "right only where the right solution scores above all nine wrong ones; level ones apart": "test_worked_numbers",
        "mean reciprocal rank, below every wrong solution of its score": "test_worked_numbers",
        "judges of pairs: one lost comparison is enough": "test_a_judge_of_pairs_has_to_win_them_all",
        "eight ways to make one number of the scores of steps": "test_scores_of_steps_in_one_number",
        "best of n, where the answer most give breaks a tie": "test_a_tie_is_broken_by_the_answers",
        "proxy and gold reward of the best of n, by the divergence that it costs": "test_the_curve_bends_down",
        "how far a benchmark says what optimising will gain": "test_validity",
        "in assay eval FOLDER --steps FILE": "test_the_command_says_how_often_it_is_found",
        "its 483 problems are read as they are published": "test_its_problems_are_read",
    },
    choices=(
        "a problem with a solution that is not scored is left out, and a response without a step has no score, not 0.5",
        "a probability of 0 or 1 is held 2^-40 away from it where its odds are taken",
        "a judge of pairs sees each pair in both orders, the code's in one",
        "validity is Spearman's rank correlation",
        "by default steps end with lines, and the lowest score counts",
    ),
)
def rewardmath(
    scorer: Any, reduce: Reduce = "min", steps: Steps | None = None, sampling: Sampling | None = None
) -> BestOfN:
    """The best of n by a reward model, as ``assay eval --strategy "S128(scorer=FOLDER)"``; ties go to the answer that
    most of the best give.

    What the reward model is worth beforehand is said by ``assay eval FOLDER --steps rewardmath``, on the paper's 483
    problems from the Hugging Face hub, or ``--steps FILE``, a file of these or one with a right and a wrong solution in
    each row (``prompt``, ``chosen``, ``rejected``), and as many rows as wrong solutions for each problem, nine in the
    paper. See :func:`~assay.inference.supervision.one_of_many.one_of_many`; judges of pairs have
    :func:`by_pairs`. :func:`best_of_n_curve` and :func:`validity` say whether that foretells the best of n.

    Args:
        scorer: see :func:`assay.rewards.process.step_scores.make_scorer`.
        reduce: of the scores of steps, see :func:`~assay.inference.scoring.scorers.reduced`.
        steps: where they end; ``{"by": "whole"}`` for a model of outcomes.
        sampling: how tokens are drawn.

    Source: "Evaluating Robustness of Reward Models for Mathematical Reasoning" (arXiv 2410.01729) and its code.
    """
    made = BySteps(scorer, steps or Steps("newline"), reduce)
    return BestOfN(made, sampling or Sampling(), ties="majority")


def by_pairs(judge: PairJudge, problems: Sequence[tuple[str, str, Sequence[str]]]) -> OneOfMany:
    """Return how often a judge of pairs prefers the right solution to every wrong one.

    Args:
        judge: sees each pair in both orders, and has to prefer the right solution on average.
        problems: question, right solution, wrong ones. One with a pair that the judge cannot be read on is left out.

    Raises:
        UsageError: there is no problem that it can be read on.
    """
    said = judge.both_orders([(question, right, x) for question, right, wrong in problems for x in wrong])
    rows, at = [], 0
    for _, _, wrong in problems:
        mine = said[at : at + len(wrong)]
        at += len(wrong)
        if mine and None not in mine:
            rows.append(choice_of_wins([p > 0.5 for p in mine if p is not None]))
    if not rows:
        raise UsageError("S128: the judge cannot be read on all pairs of any problem; name the answers as it does")
    return one_of_many(rows)


@dataclass(frozen=True, slots=True)
class BestOf:
    """The best of n: what choosing costs in nats, and the means of what it is chosen by and of what is wanted."""

    n: int
    divergence: float
    proxy: float
    gold: float


def best_of_n_curve(proxy: ArrayLike, gold: ArrayLike, ns: Sequence[int]) -> list[BestOf]:
    """Return the expected best of n by a proxy, without drawing: exact over the n-subsets of the samples there are.

        KL(best of n || policy) = ln n - (n - 1) / n

    Over-optimisation is where the proxy goes on rising and the gold reward falls.

    Args:
        proxy, gold: ``(tasks, samples)``.
        ns: each at most the samples.

    Source: the divergence is that of "Scaling Laws for Reward Model Overoptimization" (arXiv 2210.10760).
    """
    tables = [np.asarray(x, dtype=np.float64) for x in (proxy, gold)]
    rows = list(zip(*tables, strict=True))
    return [
        BestOf(
            n,
            math.log(n) - (n - 1) / n,
            float(np.mean([best_of_k(p, p, n) for p, _ in rows])),
            float(np.mean([best_of_k(p, g, n) for p, g in rows])),
        )
        for n in ns
    ]


def validity(benchmark: Sequence[float], gains: Sequence[float]) -> float:
    """Return how far a benchmark of reward models foretells what comes of optimising them, by rank; NaN if it cannot.

    Args:
        benchmark: score of each reward model, such as :attr:`OneOfMany.strict`.
        gains: gold reward that each led to.

    Raises:
        ValueError: fewer than three models.
    """
    if len(benchmark) < 3:
        raise ValueError(f"{len(benchmark)} reward models have no rank correlation; take three or more")
    if np.ptp(benchmark) == 0 or np.ptp(gains) == 0:
        return math.nan
    return float(spearmanr(benchmark, gains).statistic)


claims(
    Claim(
        paper="S128",
        text="Of reward models that now and then fall for a wrong solution, the share of problems whose right solution "
        "is found among nine wrong ones foretells the best of 64 better than the share found against one.",
        setting="reward_models",
        evidence="mechanism",
        arms={
            "one of many": {"wrong": WRONG},
            "one to one": {"wrong": 1},
            "one to one, as many pairs": {"wrong": 1, "problems": WRONG},
        },
        better="one of many",
        baseline="one to one",
        measure="validity",
    )
)
