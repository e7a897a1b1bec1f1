"""Two factors taken apart: by hand, by least squares, and over tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.statistics.two_way import effects_over_tasks, two_way


def squares(x: np.ndarray) -> tuple[float, float, float]:
    """Sums of squares by fitting nested linear models, each effect coded to sum to zero."""
    i, j = x.shape
    code = [np.vstack([np.eye(n - 1), -np.ones(n - 1)]) for n in (i, j)]
    rows, columns = np.repeat(np.arange(i), j), np.tile(np.arange(j), i)
    one = np.ones((i * j, 1))
    a, b = code[0][rows], code[1][columns]
    y = x.ravel()

    def left(*parts: np.ndarray) -> float:
        design = np.hstack(parts)
        return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())

    return left(one) - left(one, a), left(one) - left(one, b), left(one, a, b)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10_000))
def test_squares_are_those_of_least_squares(i: int, j: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(i, j))
    found = two_way(x)
    assert np.allclose(found.grand + found.rows[:, None] + found.columns + found.interaction, x)
    for effect in (found.rows, found.columns, *found.interaction, *found.interaction.T):
        assert abs(effect.sum()) < 1e-9
    assert list(found.squares.values()) == pytest.approx(squares(x))
    assert sum(found.squares.values()) == pytest.approx(found.total)


def test_one_model_or_one_harness() -> None:
    found = two_way([[0.2, 0.4, 0.9]])
    assert found.rows == pytest.approx([0]) and found.columns == pytest.approx([-0.3, -0.1, 0.4])
    assert found.squares["interaction"] == pytest.approx(0) and found.spread == pytest.approx([0.7])


@pytest.mark.parametrize("table", [[], [[]], [1, 2], [[1, float("nan")]], [[[1.0]]]])
def test_what_is_no_table(table: list) -> None:
    with pytest.raises(UsageError, match="a number in every cell"):
        two_way(table)


def test_intervals_are_of_the_whole_task() -> None:
    """What a task adds everywhere is in no effect; the interval of an effect is that of a mean of differences."""
    rng = np.random.default_rng(1)
    tasks = 400
    hard = 5 * rng.normal(size=tasks)
    noise = rng.normal(size=(2, 2, tasks))
    found = effects_over_tasks(noise + hard)
    alike = effects_over_tasks(noise)
    for one, other in zip((*found.rows, *found.columns), (*alike.rows, *alike.columns), strict=True):
        assert one.value == pytest.approx(other.value) and one.low == pytest.approx(other.low)
    # A row's effect is half the mean difference of two row means.
    half = (noise[0].mean(0) - noise[1].mean(0)) / 2
    error = half.std(ddof=1) / tasks**0.5
    assert found.rows[0].value == pytest.approx(half.mean())
    assert found.rows[0].high - found.rows[0].low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_intervals_hold_planted_effects() -> None:
    planted = two_way(0.5 + np.array([[0.2, 0.0, 0.1], [-0.1, -0.1, -0.1]]))
    held = np.zeros(4)
    repeats = 200
    for seed in range(repeats):
        rng = np.random.default_rng([5, seed])
        table = planted.grand + planted.rows[:, None] + planted.columns + planted.interaction
        values = rng.random((2, 3, 60)) < np.clip(table[:, :, None] + 0.15 * rng.normal(size=60), 0, 1)
        found = effects_over_tasks(values, resamples=400, seed=seed)
        held += [
            found.rows[0].low <= planted.rows[0] <= found.rows[0].high,
            found.columns[1].low <= planted.columns[1] <= found.columns[1].high,
            found.interaction[0][2].low <= planted.interaction[0, 2] <= found.interaction[0][2].high,
            found.interaction[1][0].low <= planted.interaction[1, 0] <= found.interaction[1][0].high,
        ]
    assert (held / repeats > 0.88).all() and (held / repeats < 0.99).all(), held / repeats


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 1), (2, 2, 0)])
def test_too_few_tasks(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="two or more tasks"):
        effects_over_tasks(np.zeros(shape))
