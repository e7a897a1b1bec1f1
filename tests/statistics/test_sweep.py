"""Where a sweep ends, what lies beyond, and runs that fell."""

from __future__ import annotations

import pytest

from assay.statistics.spread import fallen
from assay.statistics.sweep import around, best, beyond, open_ends


def rates(*pairs: tuple[float, float]) -> list[dict[str, float]]:
    return [{"lr": rate, "mean": mean} for rate, mean in pairs]


@pytest.mark.parametrize(
    ("tried", "effect", "expected"),
    [
        (rates((0.1, 0.2), (1, 0.9), (10, 0.3)), 0.1, []),
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), 0.1, [("lr", "highest")]),
        (rates((0.1, 0.9), (1, 0.8), (10, 0.2)), 0.1, [("lr", "lowest")]),
        # Flat: the neighbour is within a tenth of the effect, here 0.1, and just outside it.
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), 1.0, []),
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), -1.0, []),
        (rates((0.1, 0.2), (1, 0.79), (10, 0.9)), 1.0, [("lr", "highest")]),
        # Tried in another order, one value alone, and a run that came to no number.
        (rates((1, 0.8), (10, 0.9), (0.1, 0.2)), 0.1, [("lr", "highest")]),
        (rates((1, 0.8)), 0.1, [("lr", "lowest"), ("lr", "highest")]),
        (rates((0.1, 0.2), (1, 0.8), (10, float("nan"))), 0.1, []),
    ],
)
def test_ends_where_an_arm_did_best(
    tried: list[dict[str, float]], effect: float, expected: list[tuple[str, str]]
) -> None:
    assert open_ends(tried, effect) == expected


def test_of_two_knobs_each_is_looked_at_where_the_other_is_best() -> None:
    means = {(1, 0.1): 0.1, (1, 0.2): 0.2, (1, 0.3): 0.1, (2, 0.1): 0.3, (2, 0.2): 0.5, (2, 0.3): 0.4}
    tried = [{"lr": lr, "clip": clip, "mean": mean} for (lr, clip), mean in means.items()]
    assert best(tried) == {"lr": 2, "clip": 0.2, "mean": 0.5}
    assert open_ends(tried, 0.1) == [("lr", "highest")]
    assert open_ends([{"kind": "a", "mean": 1.0}, {"kind": "b", "mean": 0.0}], 0.1) == [], "no number, no end"


def test_what_lies_beyond_an_end() -> None:
    assert beyond([0.1, 0.3, 1.0], (0.1, 0.3, 1.0), "highest") == 3.33
    assert beyond([0.1, 0.3, 1.0], (0.1, 0.3, 1.0), "lowest") == 0.0333
    assert beyond([1.0, 99.0], (1.0,), "highest") is None
    assert beyond([1.0], (1.0,), "highest") == 3.0 and beyond([1.0], (1.0,), "lowest") == 0.333
    assert beyond([0.0, 1.0], (0.0, 1.0), "highest") is None
    assert around(0.3) == (0.1, 0.3, 0.9)


def test_runs_far_below_the_others_of_their_arm() -> None:
    # Quartiles 0.80 and 0.82: far is below 0.80 - 3 * 0.02 = 0.74.
    assert fallen([0.73, 0.80, 0.81, 0.82, 0.83]) == 1
    assert fallen([0.75, 0.80, 0.81, 0.82, 0.83]) == 0
    assert fallen([0.9, 0.80, 0.81, 0.82, 0.83]) == 0, "above is not fallen"
    assert fallen([1.0] * 9 + [0.2]) == 1 and fallen([1.0, 1.0]) == 0
