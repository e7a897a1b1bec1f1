"""S213: the aggregates by hand and by the peer's own functions, curves, and winners that are none."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from assay.errors import UsageError
from assay.method import make_method
from assay.papers.multimodal_eval.s213_rliable import Reliable, rliable
from assay.statistics import aggregate, efficiency, profiles
from assay.statistics.efficiency import efficiency_curve, first_reached
from assay.statistics.profiles import probability_of_improvement, profile

X = [[0.1, 0.5], [0.2, 0.6], [0.3, 0.7], [1.5, 0.8]]


def defaults(of: Any) -> dict[str, Any]:
    """Defaults of a function's options, or of a class's fields."""
    found = inspect.signature(of).parameters.values()
    return {p.name: p.default for p in found if p.default is not p.empty}


def test_the_authors_settings_are_the_defaults() -> None:
    """50,000 resamples of aggregates and 2000 of profiles, 95 %, a gap from 1: as in their code."""
    authors = {"confidence": 0.95, "resamples": 50_000, "target": 1.0, "seed": 0, "method": "percentile"}
    assert defaults(rliable) == defaults(Reliable) == authors
    part = {"resamples": 2_000, "method": "t", "seed": 0}
    assert defaults(profile) == {**part, "of_means": False}
    assert defaults(probability_of_improvement) == {**part, "confidence": 0.95}
    assert defaults(efficiency_curve) == {**part, "confidence": 0.95, "aggregate": "iqm"}


@pytest.mark.parametrize(("asked", "profiles_", "improvements"), [(50_000, 2_000, 10_000), (300, 300, 300)])
def test_profiles_curves_and_improvements_take_fewer_resamples(
    monkeypatch: pytest.MonkeyPatch, asked: int, profiles_: int, improvements: int
) -> None:
    took: dict[str, Any] = {}

    def counted(name: str, of: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            took[name] = options["resamples"]
            return of(*args, **{**options, "resamples": 10})

        return call

    paper = "assay.papers.multimodal_eval.s213_rliable"
    monkeypatch.setattr(profiles, "profile", counted("profile", profile))
    monkeypatch.setattr(profiles, "probability_of_improvement", counted("improvement", probability_of_improvement))
    monkeypatch.setattr(f"{paper}.efficiency_curve", counted("curve", efficiency.efficiency_curve))
    found = rliable({"x": X}, resamples=asked)
    found.profiles([0.5]), found.improvement("x", "x"), found.efficiency()
    assert took == {"profile": profiles_, "improvement": improvements, "curve": profiles_}


@pytest.mark.parametrize(("confidence", "ends"), [(0.95, (0.0, 2.0)), (0.4, (1.0, 1.0)), (0.6, (0.0, 2.0))])
def test_the_intervals_are_quantiles_of_runs_drawn_within_tasks(confidence: float, ends: tuple[float, float]) -> None:
    """Two runs, 0 and 2: a resample's mean is 0, 1 or 2 with chance 1/4, 1/2, 1/4. A second task moves it by 5."""
    table = [[0.0, 10.0], [2.0, 10.0]]
    found = rliable({"x": table}, confidence=confidence, resamples=4000).aggregates()["x"]["mean"]
    assert (found.low - 5, found.high - 5) == (ends[0] / 2, ends[1] / 2)
    # Tasks are only drawn anew where that is asked for: of the two means, 1 and 10, either may come twice.
    alone = rliable({"x": [[1.0, 10.0]] * 2}, resamples=400)
    assert alone.aggregates()["x"]["mean"].low == alone.aggregates()["x"]["mean"].high == 5.5
    both = alone.aggregates(tasks=True)["x"]["mean"]
    assert (both.low, both.high) == (1.0, 10.0)


def test_the_band_of_a_profile_is_that_of_the_bootstrap() -> None:
    """Of 12 runs 3 are above: none of a resample is with chance .75^12 = .0317, which lies above .025."""
    x = np.array([[0.0]] * 9 + [[2.0]] * 3)
    value, low, high = profile(x, [1.0], resamples=20_000, method="percentile")
    # P(six or more of 12) = .0544, P(seven or more) = .0143: the upper end is six twelfths.
    assert (value[0], low[0], high[0]) == (0.25, 0.0, 0.5)
    [band] = rliable({"x": x}, resamples=2_000).profiles([1.0])["x"]
    assert (band.value, band.high) == (0.25, 0.5)
    # Of the tasks' means, 1 and 0, the first is above .5 in all resamples but a quarter, the second never.
    value, low, high = profile([[0, 0], [2, 0]], [0.5, 1.5], of_means=True, resamples=400, method="percentile")
    assert (value.tolist(), low.tolist(), high.tolist()) == ([0.5, 0.0], [0.0, 0.0], [0.5, 0.5])


@pytest.mark.parametrize(("confidence", "ends"), [(0.95, (0.0, 1.0)), (0.4, (0.5, 0.5)), (0.6, (0.0, 1.0))])
def test_the_improvement_of_resampled_runs(confidence: float, ends: tuple[float, float]) -> None:
    """One run of two beats 1: of a resample none, one or both do, with chance 1/4, 1/2, 1/4."""
    found = rliable({"a": [[0.0], [2.0]], "b": [[1.0], [1.0]]}, confidence=confidence, resamples=4000)
    chance = found.improvement("a", "b")
    assert (chance.value, chance.low, chance.high) == (0.5, *ends)


def test_resamples_are_held_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons held at once are at most a block, unless one resample is more; no resample is lost."""
    sizes: list[int] = []

    def noted(*args: Any, **options: Any) -> Iterator[np.ndarray]:
        sizes.append(args[1])
        return aggregate.resampled(*args, **options)

    x, y = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)
    monkeypatch.setattr(profiles, "resampled", noted)
    for block, expected in ((5 * 3 * 2 * 2, [5, 5, 1]), (1, [1] * 11)):
        monkeypatch.setattr(profiles, "BLOCK", block)
        sizes.clear()
        probability_of_improvement(x, y, resamples=11, method="percentile")
        assert sizes[::2] == sizes[1::2] == expected


def wilson(p: float, n: float, t: float) -> tuple[float, float]:
    """Ends of Wilson's interval of a share p of n, by the closed form, with the quantile t."""
    middle = (p + t * t / (2 * n)) / (1 + t * t / n)
    half = t / (1 + t * t / n) * math.sqrt(p * (1 - p) / n + t * t / (4 * n * n))
    return middle - half, middle + half


def test_the_band_of_method_t() -> None:
    x = np.array([[0.0], [0.0], [0.0], [2.0], [2.0]])
    value, low, high = profile(x, [1.0, 2.0])
    for i, k in enumerate((2, 0)):
        exact = stats.binomtest(k, 5).proportion_ci(method="wilson")
        assert (value[i], low[i], high[i]) == pytest.approx((k / 5, exact.low, exact.high), abs=1e-9)
    # Two tasks of four runs, none and two of which are above: shares .2 / 4.4 and 2.2 / 4.4 with a fifth of a run more
    # on either side, whose variances over 4 add up to .073347; on average 2.2 of 8.4 are above, p (1 - p) = .193311.
    two = np.array([[0.0, 2.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    value, low, high = profile(two, [1.0])
    trials = 0.193311 / (0.073347 / 4)
    assert (value[0], low[0], high[0]) == pytest.approx((0.25, *wilson(0.25, trials, 1.959964)), abs=1e-5)


def test_the_band_of_means_of_method_t() -> None:
    """Three runs, 2, 4 and 6: Student's interval of the mean is 4 -+ 4.303 * 2 / sqrt(3), from -.97 to 8.97."""
    tau = [-2.0, -0.2, 8.2, 10.0]
    value, low, high = profile([[2.0], [4.0], [6.0]], tau, of_means=True, resamples=20_000)
    assert value.tolist() == [1, 1, 0, 0]
    assert (low.tolist(), high.tolist()) == ([1, 0, 0, 0], [1, 1, 1, 0])
    # One run says nothing of the mean; two that agree say all.
    for runs, ends in ((1, (0.0, 1.0)), (2, (0.5, 0.5))):
        value, low, high = profile([[0.0, 2.0]] * runs, [1.0], of_means=True, resamples=50)
        assert (value[0], low[0], high[0]) == (0.5, *ends)


def improvement_of_t(x: np.ndarray, y: np.ndarray, confidence: float) -> tuple[float, float, float]:
    """DeLong's variance pair by pair, at least Hanley and McNeil's over the tasks, Satterthwaite's degrees, Wilson."""
    (m, tasks), n = x.shape, len(y)
    win = {
        (i, j, k): 0.5 * (x[i, k] >= y[j, k]) + 0.5 * (x[i, k] > y[j, k])
        for i, j, k in product(range(m), range(n), range(tasks))
    }
    value = sum(win.values()) / len(win)
    parts = []
    for k in range(tasks):
        ours = [sum(win[i, j, k] for j in range(n)) / n for i in range(m)]
        theirs = [sum(win[i, j, k] for i in range(m)) / m for j in range(n)]
        parts += [(float(np.var(v, ddof=1)) / len(v) / tasks**2, len(v) - 1) for v in (ours, theirs)]
    variance, every = sum(v for v, _ in parts), sum(d for _, d in parts)
    degrees = variance**2 / sum(v * v / d for v, d in parts) if variance else every
    pairs = tasks / (1 / m + 1 / n)
    p = (value * pairs + 0.5) / (pairs + 1)
    same_run, same_baseline = p / (2 - p), 2 * p * p / (1 + p)
    least = (p - p * p + (m - 1) * (same_run - p * p) + (n - 1) * (same_baseline - p * p)) / (m * n * tasks**2)
    trials = (p - p * p) / least
    if variance:
        trials = min(trials, value * (1 - value) / variance)
    return value, *wilson(value, trials, float(stats.t.ppf(0.5 + confidence / 2, degrees)))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[0.2, 5], [0.4, 1], [0.9, 3]], [[0.3, 2], [0.5, 4]]),
        ([[1.0], [2.0], [3.0]], [[0.0], [0.5]]),
        ([[9, 9, 0.0], [9, 9, 2.0]], [[0, 0, 1.0], [0, 0, 3.0], [0, 0, 3.0]]),
        ([[1.0, 2.0], [1.5, 2.0]], [[1.0, 2.0], [0.5, 3.0]]),
    ],
    ids=["mixed", "all better", "nearly all better", "ties"],
)
def test_the_improvement_of_method_t(x: list[list[float]], y: list[list[float]]) -> None:
    for confidence in (0.95, 0.8):
        found = probability_of_improvement(x, y, confidence=confidence)
        expected = improvement_of_t(np.array(x), np.array(y), confidence)
        assert (found.value, found.low, found.high) == pytest.approx(expected, abs=1e-9)
    default = probability_of_improvement(x, y)
    assert default == probability_of_improvement(x, y, confidence=0.95)
    # One run of either says nothing of how far they are spread.
    for a, b in ((x[:1], y), (x, y[:1])):
        alone = probability_of_improvement(a, b)
        assert (alone.low, alone.high) == (0.0, 1.0)


def test_tasks_are_compared_one_by_one() -> None:
    with pytest.raises(ValueError, match="on 1 and on 2 tasks"):
        probability_of_improvement([[1.0], [2.0]], [[1.0, 2.0], [1.0, 2.0]])
    # As many runs on as many tasks in another shape: 3 x 2 and 2 x 2 can, 2 x 3 and 2 x 2 cannot.
    with pytest.raises(ValueError, match="on 3 and on 2 tasks"):
        probability_of_improvement(np.ones((2, 3)), np.ones((2, 2)))


def test_whoever_beats_is_ahead_by_both_measures() -> None:
    """Five runs of each that agree, so that intervals have no width, on tasks where either may be far ahead."""

    def pair(a: list[float], b: list[float]) -> Reliable:
        return rliable({"a": [a] * 5, "b": [b] * 5}, resamples=20)

    # The middle nine of fifteen scores: seven 0 and two 10 against two 0 and seven 1; but b wins two tasks of three.
    found = pair([10, 0, 0], [0, 1, 1])
    assert found.aggregates()["a"]["iqm"].value == pytest.approx(20 / 9) and found.improvement("a", "b").low == 1 / 3
    assert not found.beats("a", "b") and not found.beats("b", "a")
    # A draw of one task each is no improvement, however large the lead in the one.
    assert pair([10, 0], [0, 1]).improvement("a", "b").low == 0.5 and not pair([10, 0], [0, 1]).beats("a", "b")
    # Equal IQMs, 7 / 9: ahead in two tasks of three is not enough.
    assert not pair([1, 1, 0], [0, 0, 3.5]).beats("a", "b")
    assert pair([1, 1, 0], [0, 0, 3.0]).beats("a", "b")


def test_every_pair_is_compared_once() -> None:
    found = rliable(dict.fromkeys("abc", X), resamples=20)
    assert set(found.improvements()) == {("b", "a"), ("c", "a"), ("c", "b")}
    assert found == rliable(dict.fromkeys("abc", X), resamples=20) and "_curves" not in repr(found)


def test_the_row_is_no_training_method() -> None:
    with pytest.raises(UsageError, match="no training method: it provides evaluate"):
        make_method("S213", {"scores": {"x": X}})


def test_worked_numbers() -> None:
    found = rliable({"x": X}, resamples=200).aggregates()["x"]
    assert {k: round(v.value, 6) for k, v in found.items()} == {
        "mean": 0.5875,
        "median": 0.5875,
        "iqm": 0.525,
        "optimality_gap": 0.475,
    }
    [half, above] = rliable({"x": X}, resamples=200).profiles([0.5, 1.5])["x"]
    assert half.value == 0.5 and above.value == 0.0, "only scores strictly above count"
    means = rliable({"x": X}, resamples=200).profiles([0.6], of_means=True)["x"]
    assert means[0].value == 0.5, "task means are .525 and .65"
    two = {"a": [[0.1, 0.5], [0.3, 0.6], [0.3, 0.7]], "b": [[0.2, 0.4], [0.2, 0.5], [0.2, 0.6]]}
    chance = rliable(two, resamples=200)
    assert chance.improvement("a", "b").value == pytest.approx(0.722222, abs=1e-6)
    assert chance.improvement("a", "a").value == pytest.approx(0.5)
    assert chance.improvements()[("b", "a")].value == pytest.approx(1 - 0.722222, abs=1e-6)


def test_an_outlier_moves_the_mean_and_not_the_iqm() -> None:
    wild = [row[:] for row in X]
    wild[3][0] = 150.0
    before, after = (rliable({"x": x}, resamples=50).aggregates()["x"] for x in (X, wild))
    assert after["iqm"].value == before["iqm"].value
    assert after["mean"].value - before["mean"].value == pytest.approx((150 - 1.5) / 8)


def test_the_target_of_the_gap() -> None:
    found = rliable({"x": X}, target=0.5, resamples=50).aggregates()["x"]["optimality_gap"].value
    assert found == pytest.approx(0.5 - (0.1 + 0.2 + 0.3 + 5 * 0.5) / 8)


def test_runs_that_agree_have_no_interval_and_beat_runs_that_agree_on_less() -> None:
    found = Reliable({"low": np.full((5, 3), 0.2), "high": np.full((6, 3), 0.4)}, resamples=100)
    iqm = found.aggregates()["high"]["iqm"]
    assert iqm.low == iqm.value == iqm.high == pytest.approx(0.4)
    assert found.beats("high", "low") and not found.beats("low", "high")
    assert found.summary() == ["low: IQM 0.200 [0.200, 0.200]", "high: IQM 0.400 [0.400, 0.400]; beats low"]


def test_each_checkpoint_has_the_interval_of_the_table_there() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((6, 4, 3)) + np.arange(3)
    curve = efficiency_curve(x, "iqm", resamples=3000)
    for k, point in enumerate(curve):
        alone = aggregate.interval(x[:, :, k], "iqm", resamples=3000)
        assert point.value == alone.value
        assert (point.low, point.high) == pytest.approx((alone.low, alone.high), abs=0.03)
    assert efficiency_curve(x, resamples=50) == efficiency_curve(x, resamples=50)
    assert rliable({"x": x}, resamples=50).efficiency()["x"] == efficiency_curve(x, resamples=50, method="percentile")
    # The last checkpoint is what the other statistics are of.
    assert rliable({"x": x}, resamples=50).aggregates()["x"]["mean"].value == pytest.approx(x[:, :, 2].mean())
    # One task may be left out of the shape.
    assert efficiency_curve(x[:, 0], resamples=50) == efficiency_curve(x[:, :1], resamples=50)


def test_runs_are_resampled_whole() -> None:
    """Two checkpoints that differ by a constant have intervals that differ by it exactly."""
    x = np.random.default_rng(1).random((5, 2))
    a, b = efficiency_curve(np.stack([x, x + 1], -1), "mean", resamples=500)
    assert (b.low - 1, b.high - 1) == pytest.approx((a.low, a.high), abs=1e-12)


def test_when_a_curve_is_beyond_a_target() -> None:
    curve = efficiency_curve(np.array([[[0.0, 0.4, 0.6]], [[0.0, 0.6, 0.6]]]), "mean", resamples=500)
    assert first_reached(curve, [10, 20, 30], 0.5) == 30, "at 20 the mean is there but not the interval"
    assert first_reached(curve, [10, 20, 30], 0.9) is None
    assert first_reached(curve, [10, 20, 30], curve[2].low) == 30, "at the target is there"
    with pytest.raises(ValueError, match="one for each"):
        first_reached(curve, [1], 0.5)


def test_curves_cover() -> None:
    """300 tables of 10 runs x 3 tasks at two checkpoints: 88 to 97 % at each (binomial error 1.5 %)."""
    rng, covered = np.random.default_rng(2), np.zeros(2)
    for i in range(300):
        truth = rng.normal(size=(3, 2))
        curve = efficiency_curve(truth + rng.normal(size=(10, 3, 2)), "mean", resamples=400, seed=i)
        covered += [p.low <= t <= p.high for p, t in zip(curve, truth.mean(0), strict=True)]
    assert (covered / 300 >= 0.88).all() and (covered / 300 <= 0.97).all()


def test_identical_methods_are_seldom_called_different() -> None:
    """200 comparisons of five runs on one task and on three, of the same law: at most 5 % have a winner."""
    rng, called = np.random.default_rng(0), 0
    for i in range(200):
        tasks = 1 if i % 2 else 3
        found = Reliable({n: rng.normal(size=(5, tasks)) for n in "ab"}, resamples=400, seed=i, method="t")
        called += found.beats("a", "b") or found.beats("b", "a")
    assert called / 200 <= 0.05


def test_the_peers_curve() -> None:
    metrics = pytest.importorskip("rliable.metrics")
    library = pytest.importorskip("rliable.library")
    x = np.random.default_rng(3).random((8, 5, 3))

    def iqm(scores: np.ndarray) -> np.ndarray:
        return np.array([metrics.aggregate_iqm(scores[..., k]) for k in range(scores.shape[-1])])

    values, ends = library.get_interval_estimates({"x": x}, iqm, reps=2000)
    ours = efficiency_curve(x, "iqm", resamples=2000)
    assert [p.value for p in ours] == pytest.approx(values["x"])
    assert pytest.approx(ends["x"], abs=0.02) == np.array([[p.low, p.high] for p in ours]).T
    pair = np.random.default_rng(4).random((2, 6, 4))
    [chance] = [metrics.probability_of_improvement(*pair)]
    assert rliable({"a": pair[0], "b": pair[1]}, resamples=50).improvement("a", "b").value == pytest.approx(chance)


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(UsageError, match="tasks: a 2, b 3"):
        rliable({"a": np.ones((2, 2)), "b": np.ones((2, 3))})
    with pytest.raises(UsageError, match="no method"):
        rliable({})
    with pytest.raises(UsageError, match="scores of 'a'"):
        rliable({"a": [[1.0, float("nan")]]})
    with pytest.raises(UsageError, match="scores of 'a'"):
        rliable({"a": np.ones((0, 2))})
    with pytest.raises(ValueError, match="not of shape"):
        efficiency_curve(np.ones((2, 2, 0)))
    with pytest.raises(ValueError, match="not of shape"):
        efficiency_curve(np.ones(3))
