"""What may be said of methods that ran on the same seeds: who is better, or how many more seeds would tell.

The rule. Two methods are told apart iff Student's t-test on their differences seed by seed, each a mean over tasks,
says so at 5% with Holm's correction over all pairs of methods; and their interquartile means agree on who is ahead. A
method wins iff it is told apart from every other one, and is better than it. The rate at which any pair of equal
methods is told apart is then 5% or less, also where runs collapse now and then (docs/compare.md has both rates).

Beside it stands the exact sign-flip test, which assumes nothing of how differences are distributed and cannot say
anything with fewer than six seeds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.statistics.aggregate import interval
from assay.statistics.intervals import Interval
from assay.statistics.paired_effect import Effect, paired_effect
from assay.statistics.power import Spread, holm, needed
from assay.statistics.profiles import probability_of_improvement
from assay.statistics.sign_flip import sign_flip

Scores = NDArray[np.float64]
LEVEL, POWER, MOST_SEEDS = 0.05, 0.8, 1000
BOUNDS = (0.0, 1.0)
"""Of a score: it is a share of right responses."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two methods compared.

    Attributes:
        a, b: their labels.
        difference: mean of ``a - b`` over paired seeds, with Student's 95% interval, for this pair alone.
        p, adjusted: p-value of the t-test, and Holm's over all pairs.
        flip: p-value of the sign-flip test, for this pair alone.
        improvement: probability that a run of ``a`` beats one of ``b``, averaged over tasks.
        verdict: of ``a`` against ``b``.
        more_seeds: how many beyond those run would tell them apart with 80% power if the difference and its spread are
            what they seem; ``None`` if told apart already, or if over 1,000 would be needed.
    """

    a: str
    b: str
    difference: Effect
    p: float
    adjusted: float
    flip: float
    improvement: Interval
    verdict: Literal["better", "worse", "not told apart"]
    more_seeds: int | None


@dataclass(frozen=True, slots=True)
class Decision:
    """Interquartile means with their intervals, every pair, and the winner if there is one."""

    iqm: Mapping[str, Interval]
    pairs: Sequence[Pair]
    winner: str | None


def paired_test(a: Scores, b: Scores, step: float = 0.0) -> tuple[Effect, float]:
    """Return the mean difference of paired scores with Student's 95% interval, and its two-sided p-value.

    Scores that are shares of finitely many responses fall on a grid, and a few differences that happen to be equal
    would claim certainty. Their standard deviation is therefore not taken below step / sqrt(6), that of the
    difference of two numbers rounded to multiples of ``step``.

    Args:
        a, b: ``(seeds,)``, two or more.
        step: distance of neighbouring scores.

    Raises:
        UsageError: fewer than two seeds.
    """
    from scipy import stats

    effect = paired_effect(a.tolist(), b.tolist())
    t = float(stats.t.ppf(0.975, effect.seeds - 1))
    error = max((effect.high - effect.value) / t, step / math.sqrt(6 * effect.seeds))
    if error == 0:
        return effect, 1.0 if effect.value == 0 else 0.0
    p = float(2 * stats.t.sf(abs(effect.value) / error, effect.seeds - 1))
    return Effect(effect.value, effect.value - t * error, effect.value + t * error, effect.seeds), p


def decide(scores: Mapping[str, Scores], step: float = 0.0, resamples: int = 10_000) -> Decision:
    """Compare methods by the rule at the top of this module.

    Args:
        scores: per method ``(seeds, tasks)`` of scores in [0, 1], in the same order of seeds and tasks; two or more
            methods and seeds.
        step: distance of neighbouring means over tasks, see :func:`paired_test`.
        resamples: of the bootstrap.

    Raises:
        UsageError: fewer than two seeds.
    """
    iqm = {
        m: interval(x, "iqm", resamples=resamples, bounds=BOUNDS, step=step * x.shape[1], seed=i)
        for i, (m, x) in enumerate(scores.items())
    }
    names = list(itertools.combinations(scores, 2))
    tests = [paired_test(scores[a].mean(1), scores[b].mean(1), step) for a, b in names]
    adjusted = holm([p for _, p in tests]).tolist()
    pairs = []
    for (a, b), (effect, p), q in zip(names, tests, adjusted, strict=True):
        # The mean and the interquartile mean may disagree on who is ahead; then nobody is.
        agree = (iqm[a].value - iqm[b].value) * effect.value > 0
        told = q < LEVEL and agree
        flip = sign_flip(scores[a].mean(1) - scores[b].mean(1))
        chance = probability_of_improvement(scores[a], scores[b])
        verdict: Literal["better", "worse", "not told apart"] = "not told apart"
        if told:
            verdict = "better" if effect.value > 0 else "worse"
        more = None if told else seeds_needed(effect, len(names)) if agree else None
        pairs.append(Pair(a, b, effect, p, q, flip, chance, verdict, more))
    return Decision(iqm, pairs, _winner(list(scores), pairs))


def seeds_needed(effect: Effect, pairs: int) -> int | None:
    """Return how many seeds beyond those run would tell two methods apart, 1 or more; ``None`` for over 1,000.

    For the t-test at 5% over ``pairs`` (Bonferroni, Holm's worst case) with 80% power, if the difference that was seen
    is the true one.
    """
    from scipy import stats

    n = effect.seeds
    if effect.value == 0:
        return None
    t = float(stats.t.ppf(0.975, n - 1))
    deviation = (effect.high - effect.value) / t * math.sqrt(n)
    total = needed(
        Spread(0.0, 0.0, deviation**2),
        effect.value,
        tasks=1,
        samples=1,
        power=POWER,
        level=LEVEL / pairs,
        most=MOST_SEEDS,
    )
    return None if total is None else max(1, total - n)


def _winner(names: Sequence[str], pairs: Sequence[Pair]) -> str | None:
    for name in names:
        verdicts = [p.verdict == ("better" if p.a == name else "worse") for p in pairs if name in (p.a, p.b)]
        if all(verdicts):
            return name
    return None
