"""Support and crossing: the papers' numbers, exact counts, and how often the intervals hold the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.statistics.crossing import crossing, first_crossing
from assay.statistics.support import Support, least_reachable, support, support_curve, support_intervals

flags = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def nan_equal(x: float, y: Fraction | None) -> bool:
    return math.isnan(x) if y is None else x == pytest.approx(float(y))


@given(flags)
def test_rates_are_the_papers_ratios(pairs: list[tuple[bool, bool]]) -> None:
    before, after = {i for i, p in enumerate(pairs) if p[0]}, {i for i, p in enumerate(pairs) if p[1]}
    kept, lost, gained = len(before & after), len(before - after), len(after - before)
    s = support([p[0] for p in pairs], [p[1] for p in pairs])
    assert (s.preserved, s.lost, s.gained, s.out_of_reach) == (kept, lost, gained, len(pairs) - len(before | after))
    retention = Fraction(kept, len(before)) if before else None
    discovery = Fraction(gained, len(after)) if after else None
    assert nan_equal(s.retention, retention) and nan_equal(s.discovery, discovery)
    assert nan_equal(s.change, Fraction(gained - lost, len(before | after)) if before | after else None)
    if retention is None or discovery is None:
        assert math.isnan(s.dynamics)
    else:
        both = retention + discovery
        assert s.dynamics == pytest.approx(float(2 * retention * discovery / both) if both else 0.0)


@given(flags, st.booleans())
def test_intervals_hold_their_estimate_and_stay_in_range(pairs: list[tuple[bool, bool]], clustered: bool) -> None:
    clusters = [i // 2 for i in range(len(pairs))] if clustered else None
    found = support_intervals([p[0] for p in pairs], [p[1] for p in pairs], clusters)
    for name, low in (("retention", 0), ("discovery", 0), ("dynamics", 0), ("change", -1)):
        interval = getattr(found, name)
        if math.isnan(getattr(found.counts, name)):
            assert math.isnan(interval.low) and math.isnan(interval.high)
        else:
            assert interval.value == pytest.approx(getattr(found.counts, name))
            assert low - 1e-9 <= interval.low <= interval.value + 1e-9
            assert interval.value - 1e-9 <= interval.high <= 1 + 1e-9


def test_few_items_leave_room_for_what_was_not_seen() -> None:
    found = support_intervals([True] * 5, [True] * 5)
    assert found.retention.value == 1 and found.retention.low < 0.6
    assert found.change.low < -0.3 and found.change.high > 0.3


def test_the_dynamics_interval_by_hand() -> None:
    """5 kept, 3 lost, 2 gained: the reciprocals' ends are apart by the distances of theirs, as they are correlated.

    An item kept pulls the retention by 3 / 8 and the discovery by -2 / 7, one lost by -5 / 8 and 0, one gained by 0 and
    5 / 7, each over a number that cancels.
    """
    before, after = [True] * 8 + [False] * 4, [True] * 5 + [False] * 3 + [True] * 2 + [False] * 2
    found = support_intervals(before, after)
    r, d = found.retention, found.discovery
    r_pull, d_pull = np.repeat([3 / 8, -5 / 8, 0], (5, 3, 2)), np.repeat([-2 / 7, 0, 5 / 7], (5, 3, 2))
    rho = r_pull @ d_pull / math.sqrt((r_pull @ r_pull) * (d_pull @ d_pull))
    total = 8 / 5 + 7 / 2
    a, b = 8 / 5 - 1 / r.high, 7 / 2 - 1 / d.high
    assert found.dynamics.high == pytest.approx(2 / (total - math.sqrt(a * a + 2 * rho * a * b + b * b)))
    a, b = 1 / r.low - 8 / 5, 1 / d.low - 7 / 2
    assert found.dynamics.low == pytest.approx(2 / (total + math.sqrt(a * a + 2 * rho * a * b + b * b)))
    # Nothing gained: what there may be of it is what the ends of both leave room for.
    none = support_intervals([True] * 6, [True] * 5 + [False])
    high = [none.retention.high, none.discovery.high]
    assert (none.dynamics.value, none.dynamics.low) == (0, 0)
    assert none.dynamics.high == pytest.approx(2 * high[0] * high[1] / sum(high))


def test_items_of_a_cluster_are_not_independent() -> None:
    before, after = [True] * 40, [True, False] * 20
    alone = support_intervals(before, after).retention
    together = support_intervals(np.repeat(before, 5), np.repeat(after, 5), np.repeat(np.arange(40), 5)).retention
    naive = support_intervals(np.repeat(before, 5), np.repeat(after, 5)).retention
    width = [i.high - i.low for i in (alone, together, naive)]
    assert width[1] == pytest.approx(width[0], rel=0.15) and width[2] < 0.6 * width[1]


def test_curve_at_n_is_the_count_and_below_it_the_expectation() -> None:
    rng = np.random.default_rng(1)
    n, before, after = 6, rng.integers(0, 3, 8), rng.integers(0, 3, 8)
    total = np.full(8, n)
    whole = support_curve((total, before), (total, after), [2, n])
    assert whole[1] == support(before > 0, after > 0)
    # Every pair of subsets of two samples, for each task, is as likely.
    expected = [0.0] * 4
    for b, a in zip(before, after, strict=True):
        hits = [[i < c or j < c for i in range(n) for j in range(i)] for c in (b, a)]
        for x in hits[0]:
            for y in hits[1]:
                expected[0 if x and y else 1 if x else 2 if y else 3] += 1 / 15**2
    found = whole[0]
    assert [found.preserved, found.lost, found.gained, found.out_of_reach] == pytest.approx(expected)


def test_what_k_samples_can_see() -> None:
    for k in (1, 10, 8192):
        p = least_reachable(k, 0.05)
        assert 1 - (1 - p) ** k == pytest.approx(0.95, abs=1e-9)
    with pytest.raises(UsageError, match="doubt"):
        least_reachable(3, 0)


def test_support_needs_the_same_items() -> None:
    with pytest.raises(UsageError, match="same items"):
        support([True], [True, False])
    with pytest.raises(UsageError, match="cluster"):
        support_intervals([True], [True], [0, 1])
    with pytest.raises(UsageError, match="values of k"):
        first_crossing([0.1], [0.1, 0.2])
    with pytest.raises(UsageError, match="one task"):
        crossing(([], []), ([], []), 1)


def test_curves_that_meet_have_crossed() -> None:
    assert first_crossing([0.1, 0.3, 0.5], [0.2, 0.3, 0.4]) == 2
    assert first_crossing([0.1, 0.2], [0.2, 0.3]) is None
    assert first_crossing([0.2], [0.1]) == 1


def test_no_crossing_within_the_samples_is_beyond_them() -> None:
    n = np.full(30, 8)
    found = crossing((n, np.full(30, 1)), (n, np.full(30, 4)), 4)
    assert found.k is None and found.low == found.high == math.inf and found.share == 0
    assert found.verdict == "after"
    assert crossing((n, np.full(30, 4)), (n, np.full(30, 1)), 4).verdict == "before"
    # pass@1 is 1 / 2 after and 1 / 8 before, pass@8 the same.
    assert crossing((n, np.full(30, 1)), (n, np.full(30, 4)), 8).k == 8


KINDS = np.array([[0.1, 0.5], [0.05, 0.0], [0.02, 0.1], [0.2, 0.9], [0.03, 0.0], [0.3, 0.6]])


def drawn(rng: np.random.Generator, tasks: int, n: int, columns: tuple[int, int]) -> list[tuple[np.ndarray, ...]]:
    kind = rng.integers(len(KINDS), size=tasks)
    return [(np.full(tasks, n), rng.binomial(n, KINDS[kind, c])) for c in columns]


def test_the_interval_of_the_crossing_holds_the_truth() -> None:
    ks = np.arange(1, 129)
    curves = [(1 - (1 - KINDS[:, [c]]) ** ks).mean(0) for c in (0, 1)]
    true = first_crossing(*curves)
    assert true == 14
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(60):
        found = crossing(*drawn(rng, 60, 128, (0, 1)), 128, resamples=300)
        held += found.low <= true <= found.high
        assert found.verdict == "crosses"
    # Nominally 57; fewer than 51 has a probability below 0.003. Of 200 draws 0.945 held it, of 200 larger ones 0.955.
    assert held >= 51


def test_equal_models_are_not_said_to_cross() -> None:
    rng = np.random.default_rng(0)
    said = [crossing(*drawn(rng, 40, 32, (0, 0)), 32, resamples=50).verdict for _ in range(40)]
    assert said.count("undecided") >= 38


def test_intervals_of_the_rates_hold_the_truth() -> None:
    joint = np.array([0.45, 0.15, 0.08, 0.32])
    true = Support(*joint)
    rng = np.random.default_rng(0)
    held = dict.fromkeys(("retention", "discovery", "dynamics", "change"), 0)
    for _ in range(200):
        z = rng.choice(4, size=100, p=joint)
        found = support_intervals((z == 0) | (z == 1), (z == 0) | (z == 2))
        for name in held:
            interval = getattr(found, name)
            held[name] += interval.low <= getattr(true, name) <= interval.high
    # Nominally 190 or more; fewer than 180 has a probability below 0.003.
    assert min(held.values()) >= 180, held


def test_problems_without_anything_in_reach_do_not_narrow_the_rates() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.random((2, 40)) < 0.5
    clusters = np.repeat(np.arange(10), 4)
    alone = support_intervals(before, after, clusters.tolist())
    nothing = np.zeros(80, dtype=bool)
    more = np.concatenate([clusters, np.repeat(np.arange(10, 30), 4)])
    beside = support_intervals(np.r_[before, nothing], np.r_[after, nothing], more.tolist())
    assert (beside.retention, beside.discovery, beside.change) == (alone.retention, alone.discovery, alone.change)
