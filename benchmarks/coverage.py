"""How often does each interval that assay gives hold the truth? ``python benchmarks/coverage.py``

Every function that returns an interval is run on data drawn by laws whose truth is known, a thousand times in each
setting. A row says in how many per cent of them the nominal 95 % interval held it, with the standard error of that
number; rows outside 93 to 97 % by more than two of these errors are marked, and the command then ends with 1. Intervals
that are exact by construction (Clopper and Pearson's) or said to be conservative, and those of few tasks or of hardly
any that are right, for which they are made wide, need only not be below. Where no construction is
known to get there, such as five draws of an exponential, the row says so.

    python benchmarks/coverage.py --sims 2000 --only iqm,auroc
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from assay.audit.agreement import Table, kappa
from assay.audit.measure import Rate
from assay.compare.statistics import paired_test
from assay.evaluate import aggregate
from assay.evaluate.at_k import best_of_k, g_pass_at_k, majority_at_k, mean_g_pass_at_k, pass_hat_k
from assay.evaluate.calibration import auroc, selective
from assay.evaluate.calibration_interval import calibration_interval
from assay.evaluate.confidence import clustered_intervals
from assay.evaluate.crossing import crossing, first_crossing
from assay.evaluate.efficiency import efficiency_curve
from assay.evaluate.intervals import mean_interval, paired_interval, ratio_interval
from assay.evaluate.pass_at_k import pass_at_k, wilson
from assay.evaluate.power import clustered_interval
from assay.evaluate.profiles import probability_of_improvement, profile
from assay.evaluate.support import support_intervals
from assay.lab.paired import paired_effect

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
    exponential = partial(few, runs=5)
    yield Case("mean", "5 runs x 1 tasks, exponential", exponential, 1.0, limit=True)
    draw = partial(tied, runs=5)
    yield Case("median", "5 runs x 20 tasks, closer than errors", draw, 0.0, limit=True)
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
                # Runs of one task that mostly part: few pairs ever say otherwise.
                yield Case("improvement", f"{runs} runs x {tasks} tasks, P = {truth:.2f}", draw, truth, tasks == 1)
    for seeds in (3, 5, 10):
        yield Case("paired_effect", f"{seeds} seeds, normal", partial(effect, seeds=seeds), 0.1)
        yield Case("paired_test", f"{seeds} seeds, normal", partial(tested, seeds=seeds), 0.1)


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
    for tasks in (20, 60, 200):
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
    return [auroc(p, y), found.area, *(float(found.accuracy[math.ceil(s * len(p)) - 1]) for s in (0.5, 0.8))]


def ranks(rng: Rng, tasks: int, k: int, bent: float) -> Any:
    p, y = sure(rng, tasks, k, bent)
    return clustered_intervals(list(p), list(y), ranked, resamples=200, seed=int(rng.integers(2**31)))


def calibrated(rng: Rng, tasks: int, k: int, bent: float) -> Any:
    p, y = sure(rng, tasks, k, bent)
    return calibration_interval(list(p), list(y), draws=500, seed=int(rng.integers(2**31)))


def scored(rng: Rng, tasks: int, k: int, bent: float, what: str) -> Any:
    p, y = sure(rng, tasks, k, bent)
    if what == "brier":
        return ratio_interval(((p - y) ** 2).sum(1), np.full(tasks, k), bounds=(0, 1))
    if what == "overconfidence":
        return ratio_interval((p - y).sum(1), np.full(tasks, k), bounds=(-1, 1))
    return ratio_interval(
        abstaining(p, y, float(what)).sum(1), np.full(tasks, k), bounds=(-1 / (1 / float(what) - 1), 1)
    )


def abstaining(p: Values, y: Values, bar: float) -> Values:
    return np.where(p >= bar, np.where(y > 0, 1.0, -bar / (1 - bar)), 0.0)


def of_confidences() -> Iterator[Case]:
    for bent in (0.0, 0.5):
        p, y = (a.ravel() for a in sure(np.random.default_rng(0), LARGE, 4, bent))
        every = ranked(p, y)
        where = np.clip(np.ceil(p * 15).astype(int) - 1, 0, 14)
        error = float(np.abs(np.bincount(where, weights=p ** (1 + bent) - p, minlength=15)).sum() / len(p))
        other = {"brier": ((p - y) ** 2).mean(), "overconfidence": (p - p ** (1 + bent)).mean()}
        for tasks, k in ((20, 4), (60, 4), (60, 16), (200, 4)):
            setting = f"{tasks} tasks x {k}, bent {bent:g}"
            yield Case("auroc, aurc, accuracy@", setting, partial(ranks, tasks=tasks, k=k, bent=bent), every)
            # Of calibrated confidences the truth is the least value there is; few samples show mostly noise.
            least = bent == 0 or tasks * k < 500
            yield Case("ece", setting, partial(calibrated, tasks=tasks, k=k, bent=bent), error, least)
            for what, truth in other.items():
                yield Case(what, setting, partial(scored, tasks=tasks, k=k, bent=bent, what=what), float(truth))
            for bar in (0.5, 0.75):
                truth = float(np.where(p >= bar, p ** (1 + bent) * (1 + bar / (1 - bar)) - bar / (1 - bar), 0.0).mean())
                yield Case(
                    f"abstaining@{bar}", setting, partial(scored, tasks=tasks, k=k, bent=bent, what=str(bar)), truth
                )


# Before and after


def reach(rng: Rng, items: int, each: int) -> Any:
    """Items of four kinds, the same for all ``each`` answers of a problem in half of the problems."""
    shared = np.repeat(rng.choice(4, items, p=KINDS), each)
    own = rng.choice(4, items * each, p=KINDS)
    kind = np.where(np.repeat(rng.random(items) < 0.5, each), shared, own)
    before, after = (kind == 0) | (kind == 1), (kind == 0) | (kind == 2)
    return support_intervals(before, after, None if each == 1 else np.repeat(np.arange(items), each).tolist())


KINDS = (0.5, 0.2, 0.1, 0.2)


def crossed(rng: Rng, tasks: int, most: int) -> Any:
    easy = rng.random(tasks) < 0.5
    before = np.where(easy, 0.3, 0.05)
    after = np.where(easy, 0.8, 0.004)
    n = np.full(tasks, most)
    found = crossing((n, rng.binomial(n, before)), (n, rng.binomial(n, after)), most, resamples=300)
    return [found, found.first, found.last, found.gap]


def of_pairs() -> Iterator[Case]:
    kept, lost, won, _ = KINDS
    rates = {
        "retention": kept / (kept + lost),
        "discovery": won / (kept + won),
        "change": (won - lost) / (kept + lost + won),
    }
    for items, each in ((60, 1), (200, 1), (60, 4)):
        for name, truth in rates.items():
            draw = partial(reached, items=items, each=each, name=name)
            yield Case(f"support {name}", f"{items} problems x {each}", draw, truth)
        srr, ndr = rates["retention"], rates["discovery"]
        draw = partial(reached, items=items, each=each, name="dynamics")
        yield Case("support dynamics", f"{items} problems x {each}", draw, 2 * srr * ndr / (srr + ndr), True)
    ks = np.arange(1, 129)
    b, a = (1 - (1 - np.array(r)[:, None]) ** ks for r in ((0.3, 0.05), (0.8, 0.004)))
    truth = first_crossing(b.mean(0), a.mean(0))
    for tasks in (60, 200):
        draw = partial(crossed, tasks=tasks, most=128)
        at = [truth, (a - b).mean(0)[0], (a - b).mean(0)[-1], b.mean(0)[-1] - a.mean(0)[0]]
        yield Case("crossing, and its ends", f"{tasks} tasks x 128", draw, at)


def reached(rng: Rng, items: int, each: int, name: str) -> Any:
    return getattr(reach(rng, items, each), name)


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
