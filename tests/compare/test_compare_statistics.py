"""The decision rule of a comparison: how often equal methods are told apart, and what it says of unequal ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarked import benchmark

from assay.compare.record import words
from assay.compare.statistics import Decision, decide, paired_test, seeds_needed
from assay.errors import UsageError
from assay.statistics.paired_effect import Effect

BENCH = benchmark("compare_rule")
QUESTIONS, SAMPLES, simulated = BENCH.QUESTIONS, BENCH.SAMPLES, BENCH.simulated


@pytest.mark.parametrize(
    ("methods", "seeds", "tasks", "collapse"),
    [
        (2, 5, 1, 0.0),
        pytest.param(2, 5, 1, 0.1, marks=pytest.mark.slow),
        (2, 2, 1, 0.0),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(2, 5, 3, 0.0), (2, 3, 1, 0.0), (3, 5, 1, 0.0)]),
        pytest.param(5, 5, 2, 0.1, marks=pytest.mark.slow),
    ],
)
def test_equal_methods_are_told_apart_in_at_most_5_percent_of_comparisons(
    methods: int, seeds: int, tasks: int, collapse: float
) -> None:
    rng = np.random.default_rng([methods, seeds, tasks])
    step, comparisons = 1 / (QUESTIONS * SAMPLES * tasks), 200
    found = [
        decide(simulated(rng, methods, seeds, tasks, collapse=collapse), step, resamples=100)
        for _ in range(comparisons)
    ]
    told = sum(any(p.verdict != "not told apart" for p in d.pairs) for d in found)
    # 5% of 200, and two standard errors of a rate that is just 5%.
    assert told <= comparisons * (0.05 + 2 * math.sqrt(0.05 * 0.95 / comparisons))
    assert all(d.winner is None for d in found if all(p.verdict == "not told apart" for p in d.pairs))


def test_a_better_method_wins() -> None:
    rng = np.random.default_rng(0)
    found = [decide(simulated(rng, 3, 5, 3, gain=2.5), resamples=500) for _ in range(30)]
    assert sum(d.winner == "m2" for d in found) >= 24
    assert not any(d.winner in ("m0", "m1") for d in found)


@pytest.mark.slow
def test_more_seeds_tell_in_about_80_percent_of_comparisons() -> None:
    """The number asked for, checked by the test on so many seeds, drawn with the difference and spread seen."""
    rng, spread, gain = np.random.default_rng(1), 0.05, 0.04
    for n in (3, 5):
        t = {3: 4.302653, 5: 2.776445}[n]
        half = t * spread / math.sqrt(n)
        more = seeds_needed(Effect(gain, gain - half, gain + half, n), 1)
        assert more is not None
        d = rng.normal(gain, spread, (1500, n + more))
        told = [paired_test(row, np.zeros_like(row))[1] < 0.05 for row in d]
        assert 0.77 < np.mean(told) < 0.87


def test_seeds_are_asked_for_only_where_they_could_tell() -> None:
    assert seeds_needed(Effect(0.1, 0.09, 0.11, 5), 1) == 1
    assert seeds_needed(Effect(0.0, -0.1, 0.1, 5), 1) is None
    assert seeds_needed(Effect(1e-4, -0.1, 0.1, 5), 1) is None


def test_a_difference_seed_by_seed_counts_though_the_methods_intervals_overlap() -> None:
    start = np.linspace(0.2, 0.8, 8)[:, None]
    found = decide({"a": start + 0.1, "b": start})
    [pair] = found.pairs
    assert found.iqm["a"].low < found.iqm["b"].high
    # All eight differences have one sign: of 2^8 patterns two are as extreme.
    assert pair.adjusted < 1e-6 and pair.flip == 2 / 256
    assert (pair.verdict, found.winner) == ("better", "a")


def test_nobody_is_ahead_where_mean_and_interquartile_mean_disagree() -> None:
    a = np.array([0.51, 0.51, 0.51, 0.51, 0.51, 0.51, 0.0, 0.0])[:, None]
    b = np.array([0.50, 0.50, 0.50, 0.50, 0.50, 0.50, 0.1, 0.1])[:, None]
    found = decide({"a": a, "b": b})
    [pair] = found.pairs
    assert found.iqm["a"].value > found.iqm["b"].value and pair.difference.value < 0
    assert (pair.verdict, pair.more_seeds, found.winner) == ("not told apart", None, None)


def test_clear_differences_are_called_and_ordered() -> None:
    noise = np.array([[0.0], [0.01], [0.02], [0.01], [0.03]])
    scores = {"low": 0.2 + noise, "high": 0.8 + noise[::-1], "middle": 0.5 + np.roll(noise, 1, 0)}
    found = decide(scores, step=1e-3)
    assert found.winner == "high" and words(found) == ["high is better than every other method."]
    assert [(p.a, p.b, p.verdict) for p in found.pairs] == [
        ("low", "high", "worse"),
        ("low", "middle", "worse"),
        ("high", "middle", "better"),
    ]
    assert found.pairs[2].improvement.value == 1.0


def test_p_values_are_scipys_and_corrected_for_all_pairs() -> None:
    from scipy import stats

    rng = np.random.default_rng(3)
    scores = {name: rng.normal(0.5, 0.1, (6, 2)) for name in "abc"}
    found = decide(scores)
    expected = [stats.ttest_rel(scores[a].mean(1), scores[b].mean(1)) for a, b in itertools.combinations("abc", 2)]
    assert [p.p for p in found.pairs] == pytest.approx([e.pvalue for e in expected])
    ends = expected[0].confidence_interval(0.95)
    assert (found.pairs[0].difference.low, found.pairs[0].difference.high) == pytest.approx((ends.low, ends.high))
    # Holm by hand: the smallest times 3, the next times 2, the largest once, none below the one before.
    order = sorted(p.p for p in found.pairs)
    by_hand = np.minimum(np.maximum.accumulate([3 * order[0], 2 * order[1], order[2]]), 1)
    assert sorted(p.adjusted for p in found.pairs) == pytest.approx(by_hand.tolist())


def test_equal_differences_by_rounding_claim_no_certainty() -> None:
    a, b = np.array([0.55, 0.60]), np.array([0.50, 0.55])
    assert paired_test(a, b)[1] < 1e-6
    effect, p = paired_test(a, b, step=0.05)
    # Standard deviation .05 / sqrt(6), error .05 / sqrt(12): t = sqrt(12), one degree of freedom.
    assert p == pytest.approx(1 - 2 * math.atan(math.sqrt(12)) / math.pi) and effect.low < 0
    assert paired_test(a, a) == (Effect(0.0, 0.0, 0.0, 2), 1.0)
    with pytest.raises(UsageError, match="two or more"):
        paired_test(a[:1], b[:1])


def test_words_of_pairs_that_need_more() -> None:
    rng = np.random.default_rng(5)
    found: Decision = decide(dict(simulated(rng, 2, 5, 1)))
    said = words(found)
    assert len(said) == 2 and "not told apart" in said[1] and ("more seed" in said[1] or "1,000" in said[1])
