"""Intervals hold the truth about as often as they say: a few settings of ``benchmarks/coverage.py``, which has all.

200 data sets each. Where an interval covers in just 93 or 97 % of cases, the share seen is further outside than three
of its standard errors (1.8 and 1.2 points) in less than one case of 700.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarked import benchmark
from scipy import stats

from assay.statistics import aggregate
from assay.statistics.calibration_interval import calibration_interval
from assay.statistics.intervals import (
    Interval,
    mean_interval,
    parts_interval,
    score_interval,
    skewed_interval,
    trials_of,
)
from assay.statistics.pass_at_k import wilson
from assay.statistics.profiles import probability_of_improvement, profile

SIMS = 200


BENCH = benchmark("coverage")


def iqm(kind: str, runs: int, tasks: int) -> tuple[object, float]:
    draw = lambda rng: BENCH.aggregated(rng, kind, runs, tasks, aggregate.iqm, "t")  # noqa: E731
    return draw, BENCH.truth_of(kind, tasks, aggregate.iqm)


def gone(most: float) -> float:
    """How far a rise by up to ``most`` of rates of Beta(.5, 1.5) is short of most / 2, since they end at 1."""
    from scipy import integrate, stats

    short = lambda rate: stats.beta.pdf(rate, 0.5, 1.5) * (most - 1 + rate) ** 2 / (2 * most)  # noqa: E731
    return float(integrate.quad(short, 1 - most, 1)[0])


def worth_of_abstaining(bar: float) -> float:
    """Of calibrated confidences, the logistic function of a normal variable of variance 2."""
    from scipy import integrate, stats

    def worth(z: float) -> float:
        p = 1 / (1 + math.exp(-z))
        return stats.norm.pdf(z, scale=math.sqrt(2)) * (p - (1 - p) * bar / (1 - bar))

    return float(integrate.quad(worth, math.log(bar / (1 - bar)), 12)[0])


def near_one(runs: int) -> tuple[object, float]:
    truth = float(aggregate.iqm(BENCH.shares(np.random.default_rng(0), "near 1", BENCH.LARGE, 1)))
    return lambda rng: BENCH.bounded(rng, "near 1", runs, 1), truth


CASES = {
    "IQM, 3 runs near 1": lambda: near_one(3),
    "IQM, 5 runs x 1 task": lambda: iqm("normal", 5, 1),
    "IQM, 5 runs x 5 tasks": lambda: iqm("binomial", 5, 5),
    "mean of 5 runs x 5 skewed tasks": lambda: (
        lambda rng: BENCH.aggregated(rng, "skewed", 5, 5, aggregate.mean, "t"),
        0.0,
    ),
    "improvement, 5 runs x 5 tasks": lambda: (lambda rng: BENCH.improved(rng, 5, np.zeros(5)), 0.5),
    "pass@1 of 20 hard tasks": lambda: (
        lambda rng: BENCH.per_task(rng, "hard", 20, 8, BENCH.METRICS["pass@1"][1]),
        0.2,
    ),
    "difference over 50 tasks": lambda: (lambda rng: BENCH.differed(rng, 50, 8), 0.2),
    "small difference over 50 tasks": lambda: (
        lambda rng: BENCH.apart(rng, lambda rng: BENCH.small(rng, 50, 1, 64, 0.04)),
        0.02 - gone(0.04),
    ),
    "precision over 30 hard tasks x 8": lambda: (lambda rng: BENCH.believed(rng, 30, (0.3, 0.7)), 0.5625),
    "abstaining at .75 over 20 tasks x 4": lambda: (
        lambda rng: BENCH.scored(rng, 20, 4, 0.0, "0.75"),
        worth_of_abstaining(0.75),
    ),
    "clustered mean of 20 tasks": lambda: (lambda rng: BENCH.clusters(rng, 20, "hard"), 0.2),
    "tokens per right of 60 tasks": lambda: (lambda rng: BENCH.tokens_per_right(rng, 60), 250.0),
    "paired test of 3 seeds": lambda: (lambda rng: BENCH.tested(rng, 3), 0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_intervals_cover(name: str) -> None:
    draw, truth = CASES[name]()
    share, _ = BENCH.covered(BENCH.Case(name, "", draw, truth), SIMS)
    assert 0.93 - 3 * 0.018 <= share <= min(0.97 + 3 * 0.012, 0.9999)


def test_percentiles_of_five_runs_do_not_cover() -> None:
    """Why there is another construction: the share is below 90 % by more than chance."""
    draw = lambda rng: BENCH.aggregated(rng, "normal", 5, 1, aggregate.mean, "percentile")  # noqa: E731
    share, error = BENCH.covered(BENCH.Case("percentile", "", draw, 0.0), SIMS)
    assert share + 3 * error < 0.93


def test_calibrated_confidences_are_not_found_miscalibrated() -> None:
    """The error of 60 x 4 calibrated samples is about .08; the interval reaches 0 in all but 2.5 % of cases."""
    rng, zero, plain = np.random.default_rng(0), 0, []
    for i in range(100):
        p, y = BENCH.sure(rng, 60, 4, 0.0)
        found = calibration_interval(list(p), list(y), draws=300, seed=i)
        zero += found.low == 0
        plain.append(found.value)
    assert zero >= 92 and np.mean(plain) > 0.06
    p, y = BENCH.sure(rng, 400, 8, 1.5)
    found = calibration_interval(list(p), list(y))
    assert 0.15 < found.low < found.value < found.high < 0.35
    one = calibration_interval([p[0]], [y[0]])
    assert math.isnan(one.low) and math.isnan(one.high)


def test_the_calibration_error_s_interval_is_about_a_quarter_of_the_way_to_the_unbiased_one() -> None:
    """By hand: 40 tasks of one sample in two bins, 17 of 20 right at .5 and all of 20 at .7.

    The gaps are e = (7 / 40, 6 / 40), the error their sum, .325. Student's interval is about the point a quarter of the
    way from it to sum sqrt(e^2 - s^2), and reaches further down here than what is simulated does; about the error
    itself its end would be .0022 higher, at the other end of the way .0068 lower.
    """
    p, e = np.repeat([0.5, 0.7], 20), np.array([7, 6]) / 40
    y = np.concatenate([np.repeat([1.0, 0.0], (17, 3)), np.ones(20)])
    found = calibration_interval(list(p[:, None]), list(y[:, None]))
    apart = np.zeros((40, 2))
    apart[np.arange(40), np.repeat([0, 1], 20)] = (y - p) / 40
    apart = (apart - e / 40) * math.sqrt(40 / 39)
    unbiased = float(np.sqrt(e**2 - (apart**2).sum(0)).sum())
    centre, half = 0.75 * 0.325 + 0.25 * unbiased, 2.022691 * float(np.sqrt((apart.sum(1) ** 2).sum()))
    assert found.value == pytest.approx(0.325) and unbiased == pytest.approx(0.316, abs=1e-3)
    assert found.low == pytest.approx(centre - half, abs=1e-6)
    assert centre + half - 1e-6 <= found.high < centre + half + 0.005


def test_what_the_constructions_are_without_what_they_correct() -> None:
    # Wilson's for as many trials and the normal quantile.
    found = score_interval(0.3, 10, math.inf)
    assert (found.low, found.high) == pytest.approx(wilson(3, 10))
    shifted = score_interval(1.6, 10, math.inf, (1, 3))
    assert (shifted.low, shifted.high) == pytest.approx((1 + 2 * found.low, 1 + 2 * found.high))
    assert trials_of(0.3, 0.3 * 0.7 / 10, (0, 1)) == pytest.approx(10)
    # Few values: their skewness is SciPy's, unbiased for normal ones, and 1 + 6 / n times as large.
    few = np.array([1.0, 2.0, 2.5, 3.0, 11.0])
    skewness = float(stats.skew(few, bias=False)) / 5**0.5 * (1 + 6 / 5)
    expected = skewed_interval(few.mean(), float(stats.sem(few)), 4, skewness)
    found_few = mean_interval(few)
    assert (found_few.low, found_few.high) == pytest.approx((expected.low, expected.high))
    # Student's without skewness: t of 9 degrees is 2.262157.
    plain = skewed_interval(5.0, 2.0, 9)
    assert (plain.low, plain.high) == pytest.approx((5 - 2 * 2.262157, 5 + 2 * 2.262157), abs=1e-5)
    right = skewed_interval(5.0, 2.0, 9, 0.4)
    assert right.high - 5 > plain.high - 5 > 5 - right.low
    left = skewed_interval(-5.0, 2.0, 9, -0.4)
    assert (-left.high, -left.low) == pytest.approx((right.low, right.high))
    # Parts that are independent, by hand: sqrt(.1^2 + .2^2) below and sqrt(.2^2 + .1^2) above.
    both = parts_interval(Interval(0.5, 0.4, 0.7), Interval(0.3, 0.2, 0.5), 0.0)
    assert (both.low, both.high) == pytest.approx((0.2 - math.sqrt(0.05), 0.2 + math.sqrt(0.05)))


def test_intervals_stay_within_their_bounds_and_turn_with_the_values() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.choice([0.0, 0.1, 1.0], 6, p=[0.7, 0.2, 0.1])
        found, turned = mean_interval(x, bounds=(0, 1)), mean_interval(1 - x, bounds=(0, 1))
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert (1 - turned.high, 1 - turned.low) == pytest.approx((found.low, found.high))
        d = rng.choice([-1.0, 0.0, 0.5], 8)
        found, turned = mean_interval(d, bounds=(-1, 1)), mean_interval(-d, bounds=(-1, 1))
        assert -1 - 1e-9 <= found.low <= found.value <= found.high <= 1 + 1e-9
        assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))


def test_few_runs_say_little() -> None:
    x = np.array([[0.2, 0.4]])
    alone = aggregate.interval(x, "iqm")
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert aggregate.interval(x, "iqm", bounds=(0, 1)).high == 1
    assert probability_of_improvement(x, x).low == 0
    value, low, high = profile(x, [0.3])
    assert value == 0.5 and low < 0.2 and high > 0.8
    # All runs of one method above all of the other, five of each: the chance that it is always so is not certain.
    apart = probability_of_improvement(np.arange(5.0) + 10, np.arange(5.0))
    assert apart.value == apart.high == 1 and 0.4 < apart.low < 0.8
    tasks = aggregate.interval(np.random.default_rng(0).normal(size=(5, 1)), "iqm", tasks=True)
    assert tasks.low == -math.inf


def test_few_runs_at_a_bound_leave_room_for_one_that_is_not() -> None:
    """By hand: three runs of 300 right answers are 900 trials, and t of 2 degrees is 4.302653: 900 / (900 + t^2)."""
    sure = aggregate.interval(np.ones(3), "iqm", bounds=(0, 1), step=1 / 300)
    assert (sure.low, sure.high) == pytest.approx((900 / (900 + 4.302653**2), 1))
    # One wrong answer of 900 is a value of 1 - 1 / 900 with nearly as many trials: no jump.
    near = aggregate.interval([1, 1, 299 / 300], "iqm", bounds=(0, 1), step=1 / 300)
    assert near.low < sure.low and near.low == pytest.approx(sure.low, abs=0.01)
    unknown = aggregate.interval(np.ones(3), "iqm", bounds=(0, 1))
    assert unknown.low == unknown.high == 1, "without a step nothing is known of what was not seen"
    turned = aggregate.interval([0, 0, 1 / 300], "iqm", bounds=(0, 1), step=1 / 300)
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((near.low, near.high), abs=0.002)
    # Away from the bounds, and of more runs, it is hardly more than the bootstrap's.
    x = np.linspace(0.55, 0.65, 20)
    plain, found = (aggregate.interval(x, "iqm", bounds=b) for b in (None, (0, 1)))
    assert found.high - found.low == pytest.approx(plain.high - plain.low, rel=0.03)


def test_degrees_of_freedom_of_units() -> None:
    """Of one unit d, the runs less 1; of several Satterthwaite's with d + 1 / d, less 1 / d, and at most d of each."""
    drawn = np.random.default_rng(0).normal(size=100_000)

    def degrees(*variances: float) -> float:
        # Three runs of each unit: pulls of -a, 0 and a, far larger than what resampling them would show by chance.
        return aggregate.Resampling(0.0, 1e-3 * drawn, np.array([[-v, 0.0, v] for v in np.sqrt(variances)])).degrees

    assert degrees(1.0) == pytest.approx(2)
    assert degrees(1.0, 0.5) == pytest.approx(2.5 * 1.5**2 / 1.25 - 0.5)
    assert degrees(1.0, 1.0) == pytest.approx(4), "not 4.5"
    assert aggregate.Resampling(0.0, drawn, np.zeros((2, 3))).degrees == 2


def test_the_pull_of_an_observation_is_its_influence_on_a_mean() -> None:
    """Of the mean of n runs the pull of x_i is (x_i - mean) / n, by the definition of the bootstrap's covariance."""
    x = np.array([[0.0], [1.0], [5.0], [2.0]])
    found = aggregate.resampling(x, aggregate.mean, 200_000, np.random.default_rng(0))
    assert found.pull[0] == pytest.approx((x[:, 0] - 2) / 4, abs=0.01)
    # Student's interval, but for how the resamples fall: t of 3 degrees is 3.182.
    ends = found.interval(transformed=False)
    half = 3.182446 * x.std(ddof=1) / 2
    assert ends.high - ends.low == pytest.approx(2 * half, rel=0.05)


@pytest.mark.parametrize(("runs", "part"), [(2, 1), (3, 1), (5, 1 / 4), (9, 1 / 16)])
def test_ends_go_out_less_as_more_runs_show_their_spread(runs: int, part: float) -> None:
    """(2 / d)^2 of the way from the bootstrap's end to that of Wilson's equation, with d = runs - 1."""
    x = np.array([[1.0]] * (runs - 1) + [[0.9]])
    found = aggregate.resampling(x, aggregate.mean, 20_000, np.random.default_rng(0))
    assert found.degrees == pytest.approx(runs - 1)
    plain, ends = found.interval(), found.bounded((0.0, 1.0))
    score = score_interval(found.value, found.value * (1 - found.value) / found.error**2, runs - 1)
    assert score.low < plain.low
    assert ends.low == pytest.approx(max(plain.low, 0) - part * (max(plain.low, 0) - score.low))
