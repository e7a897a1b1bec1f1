"""S213: the aggregates by hand and by the peer's own functions, curves, and winners that are none."""

from __future__ import annotations

import numpy as np
import pytest

from assay.errors import UsageError
from assay.method import make_method
from assay.papers.multimodal_eval.s213_rliable import Reliable, rliable
from assay.statistics import aggregate
from assay.statistics.efficiency import efficiency_curve, first_reached

X = [[0.1, 0.5], [0.2, 0.6], [0.3, 0.7], [1.5, 0.8]]


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
    assert rliable({"x": x}, resamples=50).efficiency()["x"] == efficiency_curve(x, resamples=50)
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
        found = Reliable({n: rng.normal(size=(5, tasks)) for n in "ab"}, resamples=400, seed=i)
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
    with pytest.raises(ValueError, match="not of shape"):
        efficiency_curve(np.ones(3))
