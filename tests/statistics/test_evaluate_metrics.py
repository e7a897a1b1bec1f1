"""Metrics over k samples against enumeration of every subset, calibration by hand, statistics against SciPy."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.evaluate.paired import sign_flip_test
from assay.statistics import aggregate, profiles
from assay.statistics.at_k import best_of_k, g_pass_at_k, majority_at_k, mean_g_pass_at_k, pass_hat_k
from assay.statistics.calibration import abstaining_accuracy, auroc, brier, expected_calibration_error, selective
from assay.statistics.pass_at_k import pass_at_k, pass_curve
from assay.statistics.power import (
    Spread,
    benjamini_hochberg,
    binary_spread,
    clustered_interval,
    detectable,
    holm,
    needed,
)


def exact_pass(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


@given(st.integers(1, 1024).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_exact(ncK: tuple[int, int, int]) -> None:
    n, c, k = ncK
    found = pass_curve([n, n], [c, 0], [k, 1])
    assert found[0, 0] == pytest.approx(float(exact_pass(n, c, k)), abs=1e-12)
    assert found[0, 1] == pytest.approx(c / n, abs=1e-12) and found[1].tolist() == [0, 0]
    assert pass_at_k(n, c, k) == pytest.approx(float(exact_pass(n, c, k)), abs=1e-12)


SAMPLES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b", "c", None])), min_size=1, max_size=8
)


@given(SAMPLES, st.data())
def test_every_metric_is_the_mean_over_subsets(
    samples: list[tuple[bool, int, str | None]], data: st.DataObject
) -> None:
    n = len(samples)
    k = data.draw(st.integers(1, n))
    right = [r for r, _, _ in samples]
    subsets = list(combinations(range(n), k))
    c = sum(right)

    def mean(of: object) -> float:
        return float(np.mean([of(s) for s in subsets]))  # type: ignore[operator]

    assert pass_at_k(n, c, k) == pytest.approx(mean(lambda s: any(right[i] for i in s)))
    assert pass_hat_k(n, c, k) == pytest.approx(mean(lambda s: all(right[i] for i in s)))
    for tau in (0.25, 0.5, 1.0):
        expected = mean(lambda s, tau=tau: sum(right[i] for i in s) >= math.ceil(tau * k))
        assert g_pass_at_k(n, c, k, tau) == pytest.approx(expected)
    scores = [s for _, s, _ in samples]

    def best(s: tuple[int, ...]) -> float:
        top = max(scores[i] for i in s)
        return float(np.mean([right[i] for i in s if scores[i] == top]))

    assert best_of_k(scores, right, k) == pytest.approx(mean(best))
    answers = [a for _, _, a in samples]
    truth = {"a": True, "b": False, "c": True}

    def vote(s: tuple[int, ...]) -> float:
        said = [answers[i] for i in s if answers[i] is not None]
        if not said:
            return 0.0
        most = max(said.count(a) for a in set(said))
        return float(np.mean([truth[a] for a in set(said) if said.count(a) == most]))  # type: ignore[index]

    judged = [bool(a and truth[a]) for a in answers]
    assert majority_at_k(answers, judged, k) == pytest.approx(mean(vote))


def test_mean_g_pass_by_hand() -> None:
    # n = 4, c = 3, k = 2: shares above a half are i = 2 alone: 2/2 * P(both right) = C(3,2)/C(4,2).
    assert mean_g_pass_at_k(4, 3, 2) == pytest.approx(0.5)
    assert mean_g_pass_at_k(4, 4, 4) == pytest.approx(2 / 4 * 2)
    # Of five, shares above three fifths: 4/5 and 5/5.
    assert mean_g_pass_at_k(5, 5, 5) == pytest.approx(2 / 5 * 2)


def test_what_has_no_share_of_right_ones() -> None:
    for tau in (0.0, 1.5):
        with pytest.raises(ValueError, match="tau in"):
            g_pass_at_k(4, 2, 2, tau)
    counts: list[tuple[Any, Any, int]] = [([4, 2], [1, 1], 3), ([4, 4], [1, 5], 3), ([4, 4], [-1, 1], 3), (4, 2, 0)]
    for total, correct, k in counts:
        with pytest.raises(ValueError, match="1 <= k <= total and 0 <= correct <= total"):
            g_pass_at_k(total, correct, k, 0.5)


def test_scores_that_are_no_finite_numbers() -> None:
    """NaN and -inf are below everything, inf above."""
    assert best_of_k([math.nan, 1.0], [1, 0], 2) == best_of_k([-math.inf, 1.0], [1, 0], 2) == 0
    assert best_of_k([math.inf, 1.0], [1, 0], 2) == 1


def test_votes_are_exact_up_to_a_size() -> None:
    """40 of 64 are right: two or three of three drawn have to be; of 65, one draw is one vote."""
    answers = ["a"] * 40 + ["b"] * 24
    exact = float(stats.hypergeom.sf(1, 64, 40, 3))
    assert majority_at_k(answers, [a == "a" for a in answers], 3, draws=1) == pytest.approx(exact)
    answers.append("b")
    assert majority_at_k(answers, [a == "a" for a in answers], 3, draws=1) in (0, 1)
    # Five level answers, one right; and one vote of two, of which one says nothing.
    assert majority_at_k(list("abcde"), [True] + [False] * 4, 5) == pytest.approx(0.2)
    mute = majority_at_k(["a", None], [True, False], 1, weights=[1.0, 1.0])
    assert mute == pytest.approx(0.5, abs=0.05) and mute not in (0, 1)
    for right, k in (([True], 1), ([True, False], 0), ([True, False], 3)):
        with pytest.raises(ValueError, match="each with its truth"):
            majority_at_k(["a", "b"], right, k)


def test_many_samples_vote_by_random_subsets() -> None:
    """Many distinct answers: within 4 standard errors (1.3 %) of the exact value that ten answers alone have."""
    rng = np.random.default_rng(0)
    answers = [str(a) for a in rng.integers(0, 40, 200)] + ["x"] * 20
    right = [a == "x" for a in answers]
    assert majority_at_k(answers, right, 220) == 1.0
    sampled = majority_at_k(answers, right, 40, draws=4000)
    again = majority_at_k(answers, right, 40, draws=4000, seed=1)
    assert abs(sampled - again) < 8 * 0.5 / math.sqrt(4000)
    few = majority_at_k(answers, right, 8)
    assert few == majority_at_k(answers, right, 8, draws=1000, seed=0) and 0 < few < 1
    assert majority_at_k(["a", "b", "b"], [True, False, False], 3, weights=[0.95, 0.3, 0.4]) == 1.0
    assert majority_at_k([None, None], [False, False], 1) == 0.0


def test_calibration_by_hand() -> None:
    p, y = [0.1, 0.4, 0.6, 0.9, 1.0], [0, 1, 0, 1, 1]
    # Two bins: (0, .5]: accuracy .5, confidence .25; (.5, 1]: accuracy 2/3, confidence 2.5/3.
    assert expected_calibration_error(p, y, bins=2) == pytest.approx(0.4 * 0.25 + 0.6 * abs(2 / 3 - 2.5 / 3))
    assert brier(p, y) == pytest.approx((0.01 + 0.36 + 0.36 + 0.01 + 0) / 5)
    assert auroc(p, y) == pytest.approx(5 / 6)
    assert math.isnan(auroc([0.5, 0.6], [1, 1]))
    curve = selective(p, y)
    assert curve.accuracy.tolist() == pytest.approx([1, 1, 2 / 3, 3 / 4, 3 / 5])
    assert curve.area == pytest.approx(1 - np.mean([1, 1, 2 / 3, 3 / 4, 3 / 5]))
    # Equal confidences are answered together.
    assert selective([0.5, 0.5], [0, 1]).accuracy.tolist() == [0.5, 0.5]
    assert abstaining_accuracy([1, 0, 0], [1, 1, 0], penalty=3) == pytest.approx(-2 / 3)
    with pytest.raises(ValueError, match="must lie in"):
        brier([1.5], [1])


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auroc_is_mann_whitney(rows: list[tuple[int, bool]]) -> None:
    good = [s for s, r in rows if r]
    bad = [s for s, r in rows if not r]
    if good and bad:
        u = stats.mannwhitneyu(good, bad).statistic
        assert auroc([s for s, _ in rows], [r for _, r in rows]) == pytest.approx(u / (len(good) * len(bad)))


X = np.array([[0.1, 0.5], [0.2, 0.6], [0.3, 0.7], [1.5, 0.8]])


def test_aggregates_by_hand() -> None:
    assert float(aggregate.mean(X)) == pytest.approx(0.5875)
    assert float(aggregate.median(X)) == pytest.approx(0.5875)
    assert float(aggregate.iqm(X)) == pytest.approx(0.525) == stats.trim_mean(X.ravel(), 0.25)
    assert float(aggregate.optimality_gap(X)) == pytest.approx(0.475)
    assert profiles.profile(X, [0.5])[0].tolist() == [0.5]
    outlier = X.copy()
    outlier[3, 0] = 150
    assert float(aggregate.iqm(outlier)) == pytest.approx(0.525) and float(aggregate.mean(outlier)) > 19
    a = [[0.1, 0.5], [0.3, 0.6], [0.3, 0.7]]
    b = [[0.2, 0.4], [0.2, 0.5], [0.2, 0.6]]
    assert profiles.probability_of_improvement(a, b).value == pytest.approx(0.722222, abs=1e-6)
    assert profiles.probability_of_improvement(a, a).value == pytest.approx(0.5)
    same = aggregate.interval(np.ones((4, 3)))
    assert (same.value, same.low, same.high) == (1, 1, 1)


def test_the_interval_covers_the_mean() -> None:
    """500 tables of 10 runs x 5 tasks: the percentile bootstrap of ten runs covers in 88 to 97 %."""
    rng, covered = np.random.default_rng(0), 0
    for i in range(500):
        truth = rng.normal(size=5)
        scores = truth + rng.normal(size=(10, 5))
        found = aggregate.interval(scores, "mean", resamples=400, seed=i)
        covered += found.low <= truth.mean() <= found.high
    assert 0.88 <= covered / 500 <= 0.97


def test_the_clustered_interval_covers_where_samples_are_alike() -> None:
    """300 sets of 30 tasks x 8 samples that share their task's rate: 92 to 98 % (binomial error 1.3 %)."""
    rng, covered, narrow = np.random.default_rng(1), 0, 0
    for _ in range(300):
        p = rng.beta(0.5, 0.5, 30)
        rows = rng.random((30, 8)) < p[:, None]
        found = clustered_interval(list(rows.astype(float)))
        covered += found.low <= 0.5 <= found.high
        half = 1.96 * rows.std() / math.sqrt(rows.size)
        narrow += abs(rows.mean() - 0.5) <= half
    assert 0.92 <= covered / 300 <= 0.98
    assert narrow / 300 < 0.75, "an interval over samples as if they were independent is far too narrow here"


def test_clusters_of_one_are_a_t_interval() -> None:
    x = np.random.default_rng(0).normal(size=6)
    x = np.concatenate([x, -x])  # without skewness
    found = clustered_interval([[v] for v in x])
    low, high = stats.t.interval(0.95, 11, x.mean(), stats.sem(x))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_power_against_simulation() -> None:
    """The t-test over tasks finds the detectable difference in 80 % of 5,000 simulated comparisons, within 2 %."""
    spread = Spread(task=0.04, sample=0.3)
    tasks, samples, seeds = 12, 4, 1
    difference = detectable(spread, tasks, samples, seeds)
    rng = np.random.default_rng(0)
    per_task = difference + rng.normal(0, math.sqrt(spread.task), (5000, tasks))
    noise = rng.normal(0, math.sqrt(spread.sample / samples), (5000, tasks))
    found = stats.ttest_1samp(per_task + noise, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)
    n = needed(spread, difference, samples=samples, seeds=seeds)
    assert n == tasks
    assert needed(spread, 0.05, tasks=100, samples=1) is None
    with pytest.raises(ValueError, match="exactly one"):
        needed(spread, 0.1, tasks=1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_the_paired_test_over_tasks_is_scipys(rows: list[tuple[int, int]]) -> None:
    """Exact over all signs, as SciPy's permutation test of paired samples enumerates them."""
    before, after = np.array(rows).T / 4
    expected = stats.permutation_test(
        (after, before), lambda a, b: (a - b).mean(), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip_test(before, after) == pytest.approx(min(1.0, expected))


def test_the_paired_test_of_single_samples_is_mcnemars() -> None:
    """12 tasks gained and 3 lost: binomial, exactly; 60 and 30 from drawn signs, within four standard errors."""
    before = np.repeat([0.0, 1.0, 1.0], (12, 3, 40))
    after = np.repeat([1.0, 0.0, 1.0], (12, 3, 40))
    assert sign_flip_test(before, after) == pytest.approx(stats.binomtest(12, 15).pvalue)
    before, after = np.repeat([0.0, 1.0], (60, 30)), np.repeat([1.0, 0.0], (60, 30))
    exact = stats.binomtest(60, 90).pvalue
    assert sign_flip_test(before, after) == pytest.approx(exact, abs=4 * math.sqrt(exact / 100_000))
    # Of many tasks it is near Student's.
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = x + rng.normal(0.15, 1, 200)
    assert sign_flip_test(x, y) == pytest.approx(stats.ttest_rel(y, x).pvalue, rel=0.1)
    assert sign_flip_test([0.5, 1.0], [0.5, 1.0]) == 1
    with pytest.raises(ValueError, match="the same tasks"):
        sign_flip_test([1.0], [1.0, 0.0])


def test_equal_models_are_seldom_told_apart_over_tasks() -> None:
    """400 pairs of evaluations of 30 tasks x 4 by one model: p below .05 in at most 5 %, and 2 errors more."""
    rng, called = np.random.default_rng(1), 0
    for i in range(400):
        before, after = rng.binomial(4, rng.beta(0.5, 1, 30), (2, 30)) / 4
        called += sign_flip_test(before, after, draws=2000, seed=i) < 0.05
    assert called / 400 <= 0.05 + 0.022


def test_the_spread_of_two_tables() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 40000)
    shift = rng.normal(0.05, 0.1, 40000)
    before = rng.random((40000, 8)) < p[:, None]
    after = rng.random((40000, 8)) < np.clip(p + shift, 0, 1)[:, None]
    found = binary_spread(before, after)
    truth = np.clip(p + shift, 0, 1) - p
    assert found.task == pytest.approx(truth.var(), rel=0.15)
    assert found.sample == pytest.approx((p * (1 - p) + (p + truth) * (1 - p - truth)).mean(), rel=0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_scipys(p: list[float]) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), atol=1e-12)
    m, order = len(p), np.argsort(p, kind="stable")
    by_definition = np.empty(m)
    for i, at in enumerate(order):
        by_definition[at] = min(1, max((m - j) * p[order[j]] for j in range(i + 1)))
    np.testing.assert_allclose(holm(p), by_definition, atol=1e-12)


def test_what_the_page_on_statistics_shows() -> None:
    """Its examples run, one after another, and what they say the results are is so."""
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(block, names)
    for function in ("holm", "benjamini_hochberg"):
        [said] = re.findall(rf"^{function}\(p\) +# (.*)$", page, re.M)
        assert names[function](names["p"]).tolist() == pytest.approx([float(v) for v in said.split(", ")], abs=5e-5)
    # By hand: error^2 = task / 200 + sample / (200 8 3) + seed / 3; all but the first is known from three seeds.
    spread = names["spread"]
    between, within = spread.task / 200, spread.sample / 4800 + spread.seed / 3
    df = (between + within) ** 2 / (between**2 / 199 + within**2 / 2)
    shift = names["detectable"](spread, tasks=200, samples=8, seeds=3) / math.sqrt(between + within)
    assert stats.nct.sf(stats.t.ppf(0.975, df), df, shift) == pytest.approx(0.8, abs=1e-6)
