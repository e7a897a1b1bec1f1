"""rliable's own aggregates, performance profiles and intervals on the same scores.

Its release needs an older pandas than the rest of the tests, hence an environment of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from assay.statistics import aggregate, profiles

metrics = pytest.importorskip("rliable.metrics", reason="rliable is not installed: make peers")
library = pytest.importorskip("rliable.library", reason="rliable is not installed: make peers")

TABLES = [(8, 12), (10, 5), (5, 26)]
OURS = {"iqm": "aggregate_iqm", "mean": "aggregate_mean", "median": "aggregate_median"}


def scores(shape: tuple[int, int], scale: float = 0.3) -> np.ndarray:
    return np.random.default_rng([*shape, int(100 * scale)]).gamma(2, scale, shape)


@pytest.mark.parametrize("shape", TABLES)
def test_aggregates_and_profiles_are_equal(shape: tuple[int, int]) -> None:
    x, y, tau = scores(shape), scores(shape, 0.35), np.linspace(0, 2, 21)
    for name, theirs in {**OURS, "optimality_gap": "aggregate_optimality_gap"}.items():
        assert float(aggregate.AGGREGATES[name](x)) == pytest.approx(getattr(metrics, theirs)(x), abs=1e-12)
    assert profiles.probability_of_improvement(x, y, resamples=50).value == pytest.approx(
        metrics.probability_of_improvement(x, y), abs=1e-12
    )
    for of_means in (False, True):
        found, _ = library.create_performance_profile({"x": x}, tau, reps=50, use_score_distribution=not of_means)
        assert profiles.profile(x, tau, of_means=of_means, resamples=50)[0] == pytest.approx(found["x"])


@pytest.mark.parametrize("name", OURS)
def test_intervals_agree_within_the_noise_of_resampling(name: str) -> None:
    """2,000 resamples place a 2.5 % quantile to about 4 % of the interval's width; 10 % allow over two of these."""
    x = scores((8, 12))
    theirs = getattr(metrics, OURS[name])
    _, found = library.get_interval_estimates({"x": x}, lambda s: np.array([theirs(s)]), reps=2000)
    ours = aggregate.interval(x, name, method="percentile", resamples=2000)
    assert (ours.low, ours.high) == pytest.approx(found["x"][:, 0], abs=0.1 * (ours.high - ours.low))


def test_the_band_of_a_profile_agrees() -> None:
    x, tau = scores((8, 12)), np.linspace(0.1, 1.5, 8)
    _, found = library.create_performance_profile({"x": x}, tau, reps=1000)
    _, low, high = profiles.profile(x, tau, method="percentile", resamples=1000)
    # A step of the profile is one score of 96.
    assert low == pytest.approx(found["x"][0], abs=2 / 96) and high == pytest.approx(found["x"][1], abs=2 / 96)
