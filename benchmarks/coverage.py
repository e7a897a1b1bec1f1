"""How often does each interval that assay gives hold the truth? ``python benchmarks/coverage.py``

Every function that returns an interval is run on data drawn by laws whose truth is known, a thousand times in each
setting. A row says in how many per cent of them the nominal 95 % interval held it, with the standard error of that
number; rows outside 93 to 97 % by more than two of these errors are marked, and the command then ends with 1. Intervals
that are exact by construction (Clopper and Pearson's) or said to be conservative, and those of few tasks or of hardly
any that are right, for which they are made wide, need only not be below. Where no construction gets there that is not
far too wide elsewhere, for differences over 20 tasks that one task in twenty makes, the row says so. All rows take 8
minutes of one core.

    python benchmarks/coverage.py --sims 2000 --only iqm,auroc
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import beta

from assay.compare.statistics import paired_test
from assay.evaluate.confidence import auroc_interval, clustered_intervals
from assay.evaluate.reference import summary
from assay.evaluate.returns import gaps
from assay.statistics import aggregate
from assay.statistics.agreement import Table, kappa
from assay.statistics.at_k import best_of_k, g_pass_at_k, majority_at_k, mean_g_pass_at_k, pass_hat_k
from assay.statistics.calibration import auroc, selective
from assay.statistics.calibration_interval import calibration_interval
from assay.statistics.crossing import crossing, first_crossing
from assay.statistics.efficiency import efficiency_curve
from assay.statistics.intervals import mean_interval, paired_interval, ratio_interval, signed_ratio_interval
from assay.statistics.judging import precision_of_verdicts
from assay.statistics.paired_effect import paired_effect
from assay.statistics.pass_at_k import pass_at_k, wilson
from assay.statistics.power import clustered_interval
from assay.statistics.profiles import probability_of_improvement, profile
from assay.statistics.rate import Rate
from assay.statistics.support import support_intervals

LOW, HIGH = 0.93, 0.97
LARGE = 200_000
"""Draws that a truth without a formula is taken from."""

Rng = np.random.Generator
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """An interval in a setting.

    Attributes:
        name, setting: of the row.
        draw: gives the ends of one interval, or of several that count as one each.
        truth: what they are to hold; one number, or as many as ``draw`` gives ends.
        least: it is meant to cover at least as often, and may do so more often.
        limit: it is known not to be reached here, and is shown to say so.
    """

    name: str
    setting: str
    draw: Callable[[Rng], Any]
    truth: Any
    least: bool = False
    limit: bool = False


# Scores of runs on tasks


def levels(tasks: int) -> Values:
    return np.linspace(-1.0, 1.0, tasks) if tasks > 1 else np.zeros(1)


def runs_of(kind: str, runs: int, tasks: int, rng: Rng) -> Values:
    """Scores ``(runs, tasks)``: tasks of different levels; runs normal, of skewness 1, or shares of 50 responses."""
    mean = levels(tasks)
    if kind == "normal":
        return mean + 0.3 * rng.normal(size=(runs, tasks))
    if kind == "skewed":
        return mean + 0.3 * (rng.gamma(4, 0.5, size=(runs, tasks)) - 2)
    return rng.binomial(50, 1 / (1 + np.exp(-mean - 0.4 * rng.normal(size=(runs, tasks))))) / 50


def truth_of(kind: str, tasks: int, function: Any) -> float:
    """An aggregate of endless runs; of the two that are not of means, by drawing many."""
    if function in (aggregate.mean, aggregate.median) and kind != "binomial":
        return 0.0
    return float(function(runs_of(kind, LARGE // tasks, tasks, np.random.default_rng(0))))


def aggregated(rng: Rng, kind: str, runs: int, tasks: int, function: Any, method: str) -> Any:
    return aggregate.interval(runs_of(kind, runs, tasks, rng), function, resamples=1000, method=method)


def of_runs() -> Iterator[Case]:
    for name, function in aggregate.AGGREGATES.items():
        for kind in ("normal", "binomial", "skewed"):
            for tasks in (1, 5, 20):
                truth = truth_of(kind, tasks, function)
                for runs in (5, 10, 20):
                    # Means of neighbouring tasks are told apart; see aggregate.interval of those that are not.
                    if name == "median" and tasks == 20:
                        continue
                    draw = partial(aggregated, kind=kind, runs=runs, tasks=tasks, function=function, method="t")
                    yield Case(name, f"{runs} runs x {tasks} tasks, {kind}", draw, truth)
    for kind in ("normal", "binomial", "skewed"):
        for tasks in (1, 3):
            truth = truth_of(kind, tasks, aggregate.iqm)
            for runs in (2, 3):
                draw = partial(aggregated, kind=kind, runs=runs, tasks=tasks, function=aggregate.iqm, method="t")
                yield Case("iqm", f"{runs} runs x {tasks} tasks, {kind}", draw, truth)
    for law in SHARES:
        for tasks in (1, 3):
            truth = float(aggregate.iqm(shares(np.random.default_rng(0), law, LARGE // tasks, tasks)))
            for runs in (2, 3, 5, 10):
                draw = partial(bounded, law=law, runs=runs, tasks=tasks)
                # Few runs near a bound, or of which one may collapse, are given room on purpose.
                least = runs * tasks < 10 or law == "one collapses"
                yield Case("iqm of shares", f"{runs} runs x {tasks} tasks, {law}", draw, truth, least)
    yield Case("mean", "5 runs x 1 tasks, exponential", partial(few, runs=5), 1.0)
    yield Case("median", "5 runs x 20 tasks, closer than errors", partial(tied, runs=5), 0.0)
    for runs in (5, 10, 20):
        yield Case(
            "efficiency_curve", f"{runs} runs x 5 tasks, normal, 2 points", partial(curve, runs=runs), [0.0, 1.0]
        )
        yield Case("iqm, tasks drawn", f"{runs} runs x 20 tasks", partial(tasks_too, runs=runs), 0.0)
    for tasks in (1, 5, 20):
        for runs in (5, 10, 20):
            tau = np.linspace(-1.2, 1.2, 9) if tasks > 1 else np.linspace(-0.35, 0.35, 9)
            held = stats.norm.sf((tau[:, None] - levels(tasks)) / 0.3).mean(1)
            draw = partial(profiled, runs=runs, tasks=tasks, tau=tau)
            # Five trials take six values: there it is Wilson's, which is wide of them.
            yield Case("profile", f"{runs} runs x {tasks} tasks, 9 thresholds", draw, held, runs * tasks < 10)
    tau = np.linspace(-0.95, 0.95, 9)
    above = (levels(20) > tau[:, None]).mean(1)
    yield Case(
        "profile of means", "5 runs x 20 tasks", partial(profiled, runs=5, tasks=20, tau=tau, means=True), above, True
    )
    for gap in (0.0, 1.0, 2.0):
        for tasks in (1, 5, 20):
            shift = gap + (levels(tasks) if tasks > 1 else 0 * levels(1))
            truth = float(stats.norm.cdf(shift / math.sqrt(2)).mean())
            for runs in (5, 10, 20):
                draw = partial(improved, runs=runs, shift=shift)
                # Runs of one task may differ in spread, under which intervals for equal spread fall to 88 %.
                yield Case("improvement", f"{runs} runs x {tasks} tasks, P = {truth:.2f}", draw, truth, tasks == 1)
    for seeds in (3, 5, 10):
        yield Case("paired_effect", f"{seeds} seeds, normal", partial(effect, seeds=seeds), 0.1)
        yield Case("paired_test", f"{seeds} seeds, normal", partial(tested, seeds=seeds), 0.1)


SHARES: dict[str, Callable[[Rng, tuple[int, int]], Values]] = {
    "most at 1": lambda rng, shape: rng.beta(20.0, 0.3, shape),
    "near 1": lambda rng, shape: rng.beta(20.0, 1.0, shape),
    "up to 1": lambda rng, shape: rng.beta(5.0, 0.5, shape),
    "low": lambda rng, shape: rng.beta(0.5, 8.0, shape),
    "around .6": lambda rng, shape: rng.beta(60.0, 40.0, shape),
    "one collapses": lambda rng, shape: np.where(rng.random(shape) < 0.1, 0.1, rng.beta(90.0, 10.0, shape)),
}
"""How often runs are right."""


def shares(rng: Rng, law: str, runs: int, tasks: int) -> Values:
    """Shares of 300 questions of each of the tasks that runs ``(runs, tasks)`` get right."""
    return rng.binomial(300, SHARES[law](rng, (runs, tasks))) / 300


def bounded(rng: Rng, law: str, runs: int, tasks: int) -> Any:
    scores = shares(rng, law, runs, tasks)
    return aggregate.interval(scores, "iqm", resamples=1000, bounds=(0, 1), step=1 / 300)


def few(rng: Rng, runs: int) -> Any:
    return aggregate.interval(rng.exponential(size=runs), "mean", resamples=1000)


def tied(rng: Rng, runs: int) -> Any:
    return aggregate.interval(levels(20) + rng.normal(size=(runs, 20)), "median", resamples=1000)


def curve(rng: Rng, runs: int) -> Any:
    x = runs_of("normal", runs, 5, rng)
    return efficiency_curve(np.stack([x, x + 1 + 0.1 * rng.normal(size=x.shape)], -1), "mean", resamples=1000)


def tasks_too(rng: Rng, runs: int) -> Any:
    x = rng.normal(size=20) + 0.5 * rng.normal(size=(runs, 20))
    return aggregate.interval(x, "iqm", tasks=True, resamples=1000)


def profiled(rng: Rng, runs: int, tasks: int, tau: Values, means: bool = False) -> Any:
    _, low, high = profile(runs_of("normal", runs, tasks, rng), tau, of_means=means)
    return list(zip(low, high, strict=True))


def improved(rng: Rng, runs: int, shift: Values) -> Any:
    x, y = rng.normal(size=(2, runs, len(shift)))
    return probability_of_improvement(x + shift, y)


def effect(rng: Rng, seeds: int) -> Any:
    x = rng.normal(size=seeds)
    return paired_effect((x + 0.1 + 0.2 * rng.normal(size=seeds)).tolist(), x.tolist())


def tested(rng: Rng, seeds: int) -> Any:
    x = rng.normal(size=seeds)
    return paired_test(x + 0.1 + 0.2 * rng.normal(size=seeds), x)[0]


# Means over tasks

RATES: dict[str, tuple[float, float]] = {"hard": (0.5, 2.0), "mixed": (2.0, 3.0), "either": (0.4, 0.4)}
"""Beta laws of the tasks' rates."""


def counts(rng: Rng, law: str, tasks: int, n: int) -> NDArray[np.int64]:
    return rng.binomial(n, rng.beta(*RATES[law], tasks))


def per_task(rng: Rng, law: str, tasks: int, n: int, value: Callable[[NDArray[np.int64], int], Any]) -> Any:
    return mean_interval(np.clip(value(counts(rng, law, tasks, n), n), 0, 1), bounds=(0, 1))


METRICS: dict[str, tuple[int, Callable[[Any, int], Any]]] = {
    "pass@1": (8, lambda c, n: pass_at_k(np.full(len(c), n), c, 1)),
    "pass@1 of 1": (1, lambda c, n: c.astype(float)),
    "pass@4": (8, lambda c, n: pass_at_k(np.full(len(c), n), c, 4)),
    "pass^4": (8, lambda c, n: pass_hat_k(np.full(len(c), n), c, 4)),
    "g_pass@4_0.5": (8, lambda c, n: g_pass_at_k(np.full(len(c), n), c, 4, 0.5)),
    "mg_pass@4": (8, lambda c, n: mean_g_pass_at_k(np.full(len(c), n), c, 4)),
}


def voted(rng: Rng, tasks: int, of: str) -> Any:
    """maj@4 and best-of-4 of 8 samples: one right answer and three wrong ones, scores that know a little."""
    right = rng.random((tasks, 8)) < rng.beta(2, 3, tasks)[:, None]
    if of == "maj@4":
        said = np.where(right, 0, rng.integers(1, 4, (tasks, 8)))
        return [majority_at_k(row.tolist(), (row == 0).tolist(), 4) for row in said]
    score = right + rng.normal(size=(tasks, 8))
    return [best_of_k(s, r, 4) for s, r in zip(score, right, strict=True)]


def of_tasks() -> Iterator[Case]:
    for name, (n, value) in METRICS.items():
        for law in RATES:
            truth = float(np.mean(value(counts(np.random.default_rng(0), law, LARGE, n), n)))
            for tasks in (10, 20, 50, 200):
                # Few tasks of which hardly one is right: there the intervals are made to err on the wide side.
                coarse = tasks < 20 or tasks * min(truth, 1 - truth) < 5
                draw = partial(per_task, law=law, tasks=tasks, n=n, value=value)
                yield Case(name, f"{tasks} tasks, {law}", draw, truth, coarse)
    for of in ("maj@4", "best_of@4"):
        truth = float(np.mean(voted(np.random.default_rng(0), 20_000, of)))
        for tasks in (20, 100):
            yield Case(
                of, f"{tasks} tasks", lambda rng, t=tasks, o=of: mean_interval(voted(rng, t, o), bounds=(0, 1)), truth
            )
    for tasks in (20, 50, 200):
        yield Case(
            "mean, no bounds",
            f"{tasks} tasks, exponential",
            lambda rng, t=tasks: mean_interval(rng.exponential(size=t)),
            1.0,
        )
        yield Case("mean, no bounds", f"{tasks} tasks, lognormal(0.5)",
                   lambda rng, t=tasks: mean_interval(rng.lognormal(0, 0.5, t)), math.exp(0.125))  # fmt: skip
        yield Case(
            "mean, no bounds", f"{tasks} tasks, normal", lambda rng, t=tasks: mean_interval(rng.normal(size=t)), 0.0
        )
        # Gains and losses have an interval each, and of 20 tasks either is seen in few.
        yield Case("difference", f"{tasks} tasks x 8", partial(differed, tasks=tasks, n=8), 0.2, tasks == 20)
        yield Case("difference", f"{tasks} tasks x 1", partial(differed, tasks=tasks, n=1), 0.2, tasks == 20)
    yield from of_differences()
    for tasks in (20, 60, 200):
        for what, (draw, truth) in TOTALS.items():
            yield Case(what, f"{tasks} tasks x 8", partial(draw, tasks=tasks), truth, tasks == 20)
        yield Case("length", f"{tasks} tasks x 4, lognormal(0.5)", partial(lengths, tasks=tasks, s=0.5), 1.0)
        yield Case("length", f"{tasks} tasks x 4, lognormal(1)", partial(lengths, tasks=tasks, s=1.0), 1.0)
        yield Case("clustered mean", f"{tasks} tasks x 1 to 8", partial(clusters, tasks=tasks, law="mixed"), 0.4)
        yield Case("clustered mean", f"{tasks} tasks x 1 to 8, hard", partial(clusters, tasks=tasks, law="hard"), 0.2)
        yield Case(
            "clustered_interval", f"{tasks} tasks x 8, any values", partial(clusters_of_values, tasks=tasks), 1.0
        )
        yield Case(
            "ratio, no bounds", f"{tasks} tasks, tokens per right", partial(tokens_per_right, tasks=tasks), 250.0
        )
    for n in (20, 100):
        rates = np.linspace(0.1, 0.9, 33)
        draw = partial(proportions, n=n, rates=rates)
        yield Case("wilson", f"{n} trials, 33 rates", draw, rates)
        yield Case("audit rate", f"{n} rows, 33 rates", lambda rng, n=n, r=rates: exact(rng, n, r), rates, True)
    for n in (50, 200):
        yield Case("audit kappa", f"{n} rows", partial(kappas, n=n), (0.8 - 0.5) / 0.5)


def differed(rng: Rng, tasks: int, n: int) -> Any:
    rate = 0.8 * rng.beta(0.5, 2, tasks)
    return paired_interval(rng.binomial(n, rate) / n, rng.binomial(n, rate + 0.2) / n, bounds=(-1, 1))


def small(rng: Rng, tasks: int, k: int, n: int, most: float) -> Values:
    """Differences of pass@k of n samples, where every task's rate rises by up to ``most``."""
    first = rng.beta(0.5, 1.5, tasks)
    second = np.clip(first + most * rng.random(tasks), 0, 1)
    total = np.full(tasks, n)
    return np.asarray(
        pass_at_k(total, rng.binomial(n, second), k) - pass_at_k(total, rng.binomial(n, first), k), dtype=np.float64
    )


def sparse(rng: Rng, tasks: int, gained: float, lost: float) -> Values:
    """Differences of single samples: 1 with one chance, -1 with another."""
    u = rng.random(tasks)
    return np.where(u < gained, 1.0, np.where(u < gained + lost, -1.0, 0.0))


def uneven(rng: Rng, tasks: int, share: float) -> Values:
    """Differences of pass@1 of 16 samples: noise, but for a share of the tasks, which go from .03 to .97."""
    rate, moved = rng.random(tasks), rng.random(tasks) < share
    first, second = (np.where(moved, end, rate) for end in (0.03, 0.97))
    return (rng.binomial(16, second) - rng.binomial(16, first)) / 16


def apart(rng: Rng, draw: Callable[[Rng], Values]) -> Any:
    return mean_interval(draw(rng), bounds=(-1, 1))


def of_differences() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    first = rng.beta(0.5, 1.5, 10 * LARGE)
    step = rng.random(10 * LARGE)
    for k, n, most in ((1, 16, 0.1), (4, 16, 0.1), (16, 16, 0.1), (1, 64, 0.02)):
        second = np.clip(first + most * step, 0, 1)
        truth = float(((1 - first) ** k - (1 - second) ** k).mean())
        for tasks in (20, 50, 200):
            draw = partial(small, tasks=tasks, k=k, n=n, most=most)
            setting = f"{tasks} tasks, pass@{k} of {n}, gain {truth:.3f}"
            yield Case("difference", setting, partial(apart, draw=draw), truth, tasks == 20)
    for gained, lost in ((0.04, 0.02), (0.05, 0.05), (0.2, 0.2)):
        for tasks in (50, 200, 1000):
            draw = partial(sparse, tasks=tasks, gained=gained, lost=lost)
            setting = f"{tasks} tasks x 1, {gained:g} gained, {lost:g} lost"
            yield Case("difference", setting, partial(apart, draw=draw), gained - lost)
    for tasks in (20, 50, 200):
        draw = partial(apart, draw=partial(uneven, tasks=tasks, share=0.05))
        # Of 20 tasks none has moved in 36 % of the data sets, and the others say nothing of it; where one has, the
        # interval holds. See docs/statistics.md for what it would take.
        yield Case("difference", f"{tasks} tasks x 16, one of 20 moves", draw, 0.05 * 0.94, limit=tasks == 20)
    for right, wrong in ((0.6, 0.1), (0.3, 0.3), (0.9, 0.05)):
        for tasks in (20, 60, 200):
            # As differences, of right and wrong answers and abstentions.
            draw = partial(apart, draw=partial(sparse, tasks=tasks, gained=right, lost=wrong))
            setting = f"{tasks} tasks, {right:g} right, {wrong:g} wrong"
            yield Case("honesty", setting, draw, right - wrong)
    for tasks in (20, 60, 200):
        yield Case("returns gap", f"{tasks} problems", partial(gap_of, tasks=tasks), 2.0)
        yield Case("reference fit", f"{tasks} tasks x 4", partial(fit_of, tasks=tasks), fit_truth())


def gap_of(rng: Rng, tasks: int) -> Any:
    """Mean returns of 32 responses, of 0 or up to 48 each, and the same and 2 on average."""
    value = 48 * rng.beta(0.5, 1.0, tasks)
    first = rng.gamma(8.0, value / 8.0)
    return gaps({48: first + rng.gamma(1.0, 2.0, tasks)}, {48: first})[48]


def fit_rows(rng: Rng, tasks: int) -> list[list[Values]]:
    """Log-probabilities of references of 5 to 30 tokens under 4 samples, of tasks that differ."""
    level = rng.gamma(2.0, 0.3, tasks)
    return [
        [-m * rng.gamma(2.0, 0.5, n) for _ in range(4)]
        for m, n in zip(level.tolist(), rng.integers(5, 31, tasks).tolist(), strict=True)
    ]


def fit_of(rng: Rng, tasks: int) -> Any:
    return summary(fit_rows(rng, tasks)).log_mean_prob


@cache
def fit_truth() -> float:
    return summary(fit_rows(np.random.default_rng(0), LARGE // 4)).log_mean_prob.value


def sound(rng: Rng, tasks: int) -> Any:
    """Sound among the right of 8 samples, more often in tasks that are often solved."""
    rate = rng.beta(0.5, 0.8, tasks)
    right = rng.binomial(8, rate)
    good = rng.binomial(right, 0.3 + 0.6 * rate)
    some = right > 0
    return mean_interval(good[some] / right[some], bounds=(0, 1))


def sound_truth() -> float:
    """0.3 + 0.6 E[rate | some of 8 are right], rate of Beta(0.5, 0.8)."""
    none = beta(0.5, 8.8) / beta(0.5, 0.8)
    rate_of_none = beta(1.5, 8.8) / beta(0.5, 0.8)
    return float(0.3 + 0.6 * (0.5 / 1.3 - rate_of_none) / (1 - none))


def truncated(rng: Rng, tasks: int) -> Any:
    return ratio_interval(rng.binomial(8, rng.beta(0.3, 10, tasks)), np.full(tasks, 8), bounds=(0, 1))


def believed(rng: Rng, tasks: int, law: tuple[float, float]) -> Any:
    """Solutions that a judge accepts: 9 of 10 right ones and 3 of 10 wrong ones."""
    right = rng.random((tasks, 8)) < rng.beta(*law, (tasks, 1))
    taken = rng.random((tasks, 8)) < np.where(right, 0.9, 0.3)
    of = np.repeat(np.arange(tasks), 8).tolist()
    [found] = precision_of_verdicts(taken.ravel().astype(float).tolist(), right.ravel().tolist(), of).values()
    return found.share


TOTALS: dict[str, tuple[Callable[..., Any], float]] = {
    "sound|right": (sound, sound_truth()),
    "truncated": (truncated, 0.3 / 10.3),
    "precision, hard": (partial(believed, law=(0.3, 0.7)), 0.27 / (0.27 + 0.21)),
    "precision, easy": (partial(believed, law=(4.0, 1.0)), 0.72 / (0.72 + 0.06)),
}
"""Shares of samples and their truths."""


def lengths(rng: Rng, tasks: int, s: float) -> Any:
    mean = rng.lognormal(-s * s / 2, s, (tasks, 1))
    return ratio_interval((mean * rng.lognormal(-0.125, 0.5, (tasks, 4))).sum(1), np.full(tasks, 4))


def clusters(rng: Rng, tasks: int, law: str) -> Any:
    sizes = rng.integers(1, 9, tasks)
    return ratio_interval(rng.binomial(sizes, rng.beta(*RATES[law], tasks)), sizes, bounds=(0, 1))


def clusters_of_values(rng: Rng, tasks: int) -> Any:
    return clustered_interval(list(1 + rng.normal(size=(tasks, 1)) + rng.normal(size=(tasks, 8))))


def tokens_per_right(rng: Rng, tasks: int) -> Any:
    right = rng.binomial(8, 0.4, tasks)
    return ratio_interval(8 * 100 * rng.gamma(4, 0.25, tasks), right)


def proportions(rng: Rng, n: int, rates: Values) -> Any:
    return [wilson(int(c), n) for c in rng.binomial(n, rates)]


def exact(rng: Rng, n: int, rates: Values) -> Any:
    return [Rate.of(int(c), n) for c in rng.binomial(n, rates)]


def kappas(rng: Rng, n: int) -> Any:
    both, first, second, neither = rng.multinomial(n, [0.4, 0.1, 0.1, 0.4]).tolist()
    return kappa(Table(both, first, second, neither))


# Confidences


def sure(rng: Rng, tasks: int, k: int, bent: float) -> tuple[Values, Values]:
    """Confidences and outcomes ``(tasks, k)`` of tasks that differ; ``bent`` above 0 is overconfidence."""
    p = 1 / (1 + np.exp(-rng.normal(0, 1, (tasks, 1)) - rng.normal(0, 1, (tasks, k))))
    return p, (rng.random((tasks, k)) < p ** (1 + bent)).astype(float)


def ranked(p: Values, y: Values) -> list[float]:
    found = selective(p, y)
    return [found.area, *(float(found.accuracy[math.ceil(s * len(p)) - 1]) for s in (0.5, 0.8))]


def ranks(rng: Rng, tasks: int, k: int, bent: float) -> Any:
    p, y = sure(rng, tasks, k, bent)
    return clustered_intervals(list(p), list(y), ranked, resamples=200, seed=int(rng.integers(2**31)))


def ranked_apart(rng: Rng, tasks: int, k: int, bent: float) -> Any:
    p, y = sure(rng, tasks, k, bent)
    return auroc_interval(list(p), list(y))


def calibrated(rng: Rng, tasks: int, k: int, bent: float) -> Any:
    p, y = sure(rng, tasks, k, bent)
    return calibration_interval(list(p), list(y), draws=500, seed=int(rng.integers(2**31)))


def scored(rng: Rng, tasks: int, k: int, bent: float, what: str) -> Any:
    p, y = sure(rng, tasks, k, bent)
    if what == "brier":
        return ratio_interval(((p - y) ** 2).sum(1), np.full(tasks, k), bounds=(0, 1))
    if what == "overconfidence":
        return ratio_interval((p - y).sum(1), np.full(tasks, k), bounds=(-1, 1))
    bar = float(what)
    penalty = bar / (1 - bar)
    hits, lost = ((p >= bar) & (y > 0)).sum(1), penalty * ((p >= bar) & (y == 0)).sum(1)
    return signed_ratio_interval(hits, lost, np.full(tasks, k), bounds=(-penalty, 1))


def rare(rng: Rng, tasks: int, right: float, gap: float) -> tuple[Values, Values]:
    """Scores and outcomes ``(tasks, 4)``: a share right, not the same in all tasks, and scores a gap apart."""
    y = (rng.random((tasks, 4)) < rng.beta(4 * right, 4 - 4 * right, (tasks, 1))).astype(float)
    return gap * y + rng.normal(size=(tasks, 4)) + 0.5 * rng.normal(size=(tasks, 1)), y


def told_apart(rng: Rng, tasks: int, right: float, gap: float) -> Any:
    p, y = rare(rng, tasks, right, gap)
    while y.all() or not y.any():
        p, y = rare(rng, tasks, right, gap)
    return auroc_interval(list(p), list(y))


def of_confidences() -> Iterator[Case]:
    for bent in (0.0, 0.5):
        p, y = (a.ravel() for a in sure(np.random.default_rng(0), LARGE, 4, bent))
        every = ranked(p, y)
        where = np.clip(np.ceil(p * 15).astype(int) - 1, 0, 14)
        error = float(np.abs(np.bincount(where, weights=p ** (1 + bent) - p, minlength=15)).sum() / len(p))
        other = {"brier": ((p - y) ** 2).mean(), "overconfidence": (p - p ** (1 + bent)).mean()}
        for tasks, k in ((20, 4), (60, 4), (60, 16), (200, 4)):
            setting = f"{tasks} tasks x {k}, bent {bent:g}"
            yield Case("aurc, accuracy@", setting, partial(ranks, tasks=tasks, k=k, bent=bent), every)
            yield Case("auroc", setting, partial(ranked_apart, tasks=tasks, k=k, bent=bent), auroc(p, y), tasks == 20)
            # Of calibrated confidences the truth is the least value there is; few samples show mostly noise.
            least = bent == 0 or tasks * k < 500
            yield Case("ece", setting, partial(calibrated, tasks=tasks, k=k, bent=bent), error, least)
            for what, truth in other.items():
                yield Case(what, setting, partial(scored, tasks=tasks, k=k, bent=bent, what=what), float(truth))
            for bar in (0.5, 0.75, 0.9):
                truth = float(np.where(p >= bar, p ** (1 + bent) * (1 + bar / (1 - bar)) - bar / (1 - bar), 0.0).mean())
                draw = partial(scored, tasks=tasks, k=k, bent=bent, what=str(bar))
                yield Case(f"abstaining@{bar}", setting, draw, truth, bar == 0.9)
    for right in (0.5, 0.9, 0.95):
        for gap in (0.0, 1.0, 2.5, 3.5):
            truth = auroc(*(a.ravel() for a in rare(np.random.default_rng(0), LARGE, right, gap)))
            for tasks in (20, 60, 200):
                # What is wrong is in a few tasks, fewer than 20 but for 200 tasks.
                least = tasks == 20 or right == 0.95 or (tasks, right) == (60, 0.9)
                draw = partial(told_apart, tasks=tasks, right=right, gap=gap)
                yield Case("auroc", f"{tasks} tasks x 4, {right:.0%} right, {truth:.2f}", draw, truth, least)


# Before and after


KINDS = (0.5, 0.2, 0.1, 0.2)
FEW_LOST = {"hardly any lost": (0.6, 0.03, 0.03, 0.34), "nearly all reached": (0.9, 0.02, 0.06, 0.02)}
"""Shares of items that are preserved, lost, gained and out of reach."""


def reached(rng: Rng, items: int, each: int, name: str, kinds: tuple[float, ...] = KINDS) -> Any:
    """Items of four kinds, the same for all ``each`` answers of a problem in half of the problems."""
    shared = np.repeat(rng.choice(4, items, p=kinds), each)
    own = rng.choice(4, items * each, p=kinds)
    kind = np.where(np.repeat(rng.random(items) < 0.5, each), shared, own)
    before, after = (kind == 0) | (kind == 1), (kind == 0) | (kind == 2)
    found = support_intervals(before, after, None if each == 1 else np.repeat(np.arange(items), each).tolist())
    return getattr(found, name)


def support_rates(kinds: tuple[float, ...]) -> dict[str, float]:
    kept, lost, won, _ = kinds
    return {
        "retention": kept / (kept + lost),
        "discovery": won / (kept + won),
        "change": (won - lost) / (kept + lost + won),
    }


Rates = tuple[Values, Values]
WORLDS: dict[str, Callable[[Rng, int], Rates]] = {}
"""Rates of tasks before and after training."""


def world(name: str) -> Callable[[Callable[[Rng, int], Rates]], Callable[[Rng, int], Rates]]:
    def keep(function: Callable[[Rng, int], Rates]) -> Callable[[Rng, int], Rates]:
        WORLDS[name] = function
        return function

    return keep


@world("two kinds")
def two_kinds(rng: Rng, tasks: int) -> Rates:
    easy = rng.random(tasks) < 0.5
    return np.where(easy, 0.3, 0.05), np.where(easy, 0.8, 0.004)


@world("early")
def early(rng: Rng, tasks: int) -> Rates:
    easy = rng.random(tasks) < 0.3
    return np.where(easy, 0.3, 0.2), np.where(easy, 0.95, 0.03)


@world("spread")
def spread_out(rng: Rng, tasks: int) -> Rates:
    first, learnt = rng.beta(0.5, 2.0, tasks), rng.random(tasks) < 0.6
    return first, np.where(learnt, 1 - (1 - first) ** 4, 0.05 * first)


def crossed(rng: Rng, tasks: int, most: int, rates: Callable[[Rng, int], Rates], where: bool) -> Any:
    n = np.full(tasks, most)
    before, after = (rng.binomial(most, r) for r in rates(rng, tasks))
    found = crossing((n, before), (n, after), most, resamples=300)
    return found if where else [found.first, found.last, found.gap]


def of_pairs() -> Iterator[Case]:
    for items, each in ((60, 1), (200, 1), (60, 4)):
        rates = support_rates(KINDS)
        for name, truth in rates.items():
            draw = partial(reached, items=items, each=each, name=name)
            yield Case(f"support {name}", f"{items} problems x {each}", draw, truth)
        srr, ndr = rates["retention"], rates["discovery"]
        draw = partial(reached, items=items, each=each, name="dynamics")
        yield Case("support dynamics", f"{items} problems x {each}", draw, 2 * srr * ndr / (srr + ndr))
    for what, kinds in FEW_LOST.items():
        for items, each in ((100, 1), (300, 1), (100, 4)):
            for name, truth in support_rates(kinds).items():
                draw = partial(reached, items=items, each=each, name=name, kinds=kinds)
                # Problems of several answers: what is lost is in a few of them.
                yield Case(f"support {name}", f"{items} problems x {each}, {what}", draw, truth, each > 1)
    for name, rates_of in WORLDS.items():
        ks, (b, a) = np.arange(1, 129), rates_of(np.random.default_rng(0), LARGE)
        first, second = (np.array([(1 - (1 - r) ** k).mean() for k in ks]) for r in (b, a))
        truth = first_crossing(first, second)
        assert truth is not None
        gap = second - first
        for tasks in (60, 200):
            draw = partial(crossed, tasks=tasks, most=128, rates=rates_of)
            # The crossing is a whole number, which hardly moves where it is small.
            setting = f"{tasks} tasks x 128, {name}, at {truth}"
            yield Case("crossing", setting, partial(draw, where=True), truth, True)
            ends = [gap[0], gap[-1], first[-1] - second[0]]
            yield Case("gaps at a crossing's ends", setting, partial(draw, where=False), ends)


def cases() -> list[Case]:
    return [*of_runs(), *of_tasks(), *of_confidences(), *of_pairs()]


def covered(case: Case, sims: int, seed: int = 0) -> tuple[float, float]:
    """Return the share of intervals that held the truth, and its standard error, draws counting as one each."""
    rng = np.random.default_rng([seed, *map(ord, case.name + case.setting)])
    truths = np.atleast_1d(np.asarray(case.truth, dtype=np.float64))
    held = np.empty(sims)
    for i in range(sims):
        found = case.draw(rng)
        found = found if isinstance(found, list) else [found]
        ends = np.array([i if isinstance(i, tuple) else (i.low, i.high) for i in found])
        held[i] = np.mean((ends[:, 0] - 1e-12 <= truths) & (truths <= ends[:, 1] + 1e-12))
    share = float(held.mean())
    return share, float(max(held.std(ddof=1), 1 / math.sqrt(sims)) / math.sqrt(sims))


def fits(case: Case, share: float, error: float) -> bool:
    """Say whether the share is compatible with what is promised, within two standard errors."""
    return share + 2 * error >= LOW and (case.least or share - 2 * error <= HIGH)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sims", type=int, default=1000, help="data sets in each setting")
    parser.add_argument("--only", default="", help="names of rows, or their beginnings, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wanted = tuple(name.strip() for name in args.only.split(",") if name.strip())
    print(f"{'interval':<24}{'setting':<36}{'coverage, %':>16}")
    off = 0
    for case in cases():
        if wanted and not case.name.startswith(wanted):
            continue
        share, error = covered(case, args.sims, args.seed)
        good = fits(case, share, error)
        off += not good and not case.limit
        note = "" if good else "   a known limit" if case.limit else "   outside 93 to 97"
        print(f"{case.name:<24}{case.setting:<36}{100 * share:>9.1f} ± {100 * error:.1f}{note}", flush=True)
    print(f"{off} rows outside 93 to 97 % by more than two standard errors")
    return int(off > 0)


if __name__ == "__main__":
    sys.exit(main())
