"""S019: tiers and proximities by hand, and that no wrong response outranks a right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.catalogue import make
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits import choices
from assay.papers.rewards.s019_ssl import SweetSpot, block_proximity, gaussian_proximity
from assay.types import Span, Task, Turn, Verdict
from assay.verify.geometry.point import Point

pytestmark = pytest.mark.usefixtures("one_thread")
SHARES = [0, 0.2, 0.3, 0.5, 0.74, 0.75, 0.99, 1]


def test_tiers_by_hand(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1] * 8, rewards=SHARES, passed=[False] * 7 + [True])
    reward = make("S019").reward(batch)
    tier = [0, 0, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1]
    assert reward.terms["tier"].tolist() == pytest.approx(tier)
    assert reward.values.tolist() == pytest.approx([t / 2 for t in tier[:7]] + [1.5])
    assert {"verdict", "tier", "proximity"} <= set(reward.terms)


def test_what_it_is_unless_told_otherwise() -> None:
    for reward in (make("S019").reward, SweetSpot()):
        assert reward.alpha == 0.5 and reward.tiers.edges == [0.25, 0.5, 0.75]
        assert reward.tiers.worth == pytest.approx([0, 1 / 3, 2 / 3, 1])
    told = SweetSpot(tiers=2, alpha=0.25, worth=[1, 3])
    assert told.tiers.edges == [0.5] and told.tiers.worth == [1, 3] and told.alpha == 0.25
    assert SweetSpot(tiers=1).tiers.worth == [0] and SweetSpot(alpha=0.0).alpha == 0
    assert SweetSpot(tiers=2, worth=[1, 1]).tiers.worth == [1, 1]
    # A range of worths from 3 to 5 adds at most 0.4 * 2 to what all have.
    assert SweetSpot(tiers=2, alpha=0.4, worth=[3, 5])
    with pytest.raises(UsageError, match="a bonus of 1 "):
        SweetSpot(tiers=2, alpha=0.5, worth=[3, 5])


def test_clicks_are_worth_more_the_nearer_they_are(make_batch: Callable[..., Any]) -> None:
    """A box of 40 by 20, deviations 20 and 10: in its middle, off by 10 and 5, at its corner, 30 and 40 to its right.

    They are as near as e^0, e^-1/4 = 0.78, e^-1 = 0.37, e^-9/8 = 0.32 and e^-2 = 0.14.
    """
    points = [(20, 10), (30, 15), (40, 20), (50, 10), (60, 10)]
    task = Task("t", "where?", {"box": [0, 0, 40, 20]}, "point")
    verify = Point(proximity="gaussian", zones=0, spread=0.5)
    batch = make_batch([1] * 5, tasks=[task] * 5)
    batch.verdicts = [verify(task, rf"\boxed{{({x}, {y})}}") for x, y in points]
    reward = make("S019", proximity={"name": "part", "part": "near"}).reward(batch)
    assert reward.terms["proximity"].tolist() == pytest.approx([1, 0.778801, 0.367879, 0.324652, 0.135335], abs=1e-6)
    assert reward.values.tolist() == pytest.approx([1.5, 1.5, 1 + 1 / 6, 1 / 6, 0])
    for (x, y), near in zip(points, reward.terms["proximity"].tolist(), strict=True):
        assert gaussian_proximity((x, y), (0, 0, 40, 20)) == pytest.approx(near)


def test_one_tier_is_the_verdict_and_many_are_continuous(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1] * 8, rewards=SHARES, passed=[False] * 7 + [True])
    assert make("S019", tiers=1).reward(batch).values.tolist() == [0] * 7 + [1]
    fine = make("S019", tiers=10_000).reward(batch).values
    assert torch.allclose(fine, torch.tensor([s / 2 for s in SHARES[:7]] + [1.5], dtype=fine.dtype), atol=1e-4)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=8),
    st.integers(1, 9),
    st.floats(0, 0.99),
)
def test_right_outranks_wrong(
    make_batch: Callable[..., Any], rows: list[tuple[float, bool]], tiers: int, alpha: float
) -> None:
    batch = make_batch([1] * len(rows), rewards=[s for s, _ in rows], passed=[p for _, p in rows])
    values = SweetSpot(tiers=tiers, alpha=alpha)(batch).values.tolist()
    right = [v for v, (_, p) in zip(values, rows, strict=True) if p]
    wrong = [v for v, (_, p) in zip(values, rows, strict=True) if not p]
    assert not right or not wrong or min(right) > max(wrong)


def test_where_the_proximity_comes_from(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([2] * 4, rewards=[0.1] * 4, passed=[False, False, False, None])
    spans = (Span("step", 0, 1, {"proximity": 0.2}), Span("turn", 1, 2, {"proximity": 9.0}), Span("step", 0, 2))
    turns = (Turn(0, 0, 1), Turn(1, 1, 2, info={"proximity": 1.0}))
    batch.episodes = [replace(batch.episodes[0], spans=spans, turns=turns), *batch.episodes[1:]]
    batch.verdicts = [
        batch.verdicts[0],
        Verdict(0.1, False, {"proximity": 0.9}),
        Verdict(0.1, False, {"proximity": None}),
        batch.verdicts[3],
    ]
    reward = make("S019").reward(batch)
    assert reward.terms["proximity"][:2].tolist() == pytest.approx([0.6, 0.9])
    assert reward.valid is not None and reward.valid.tolist() == [True, True, False, False]
    batch.verdicts = [Verdict(1.5, False)] * 4
    batch.episodes = [replace(e, spans=(), turns=()) for e in batch.episodes]
    with pytest.raises(RunError, match=r"row 0.*task-0"):
        make("S019").reward(batch)


def test_gaussian() -> None:
    assert gaussian_proximity((30, 15), (0, 0, 40, 20)) == pytest.approx(0.778801, abs=1e-6), "dx 10, dy 5"
    assert gaussian_proximity((20, 10), (0, 0, 40, 20)) == 1
    # Of a box from (10, 40) of 20 by 10 with deviations 20 and 5: 20 off in x, 5 in y.
    assert gaussian_proximity((40, 50), (10, 40, 30, 50), (1.0, 0.5)) == pytest.approx(0.367879, abs=1e-6)
    for box, scale in (((5, 5, 5, 9), (1, 1)), ((5, 5, 9, 5), (1, 1)), ((0, 0, 1, 1), (0, 1)), ((0, 0, 1, 1), (1, -1))):
        with pytest.raises(UsageError, match="proximity"):
            gaussian_proximity((0, 0), box, scale)


def test_blocks() -> None:
    wanted = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 0, 1, 2]]
    off = [[1, 2, 3, 4], [5, 6, 7, 0], [9, 0, 1, 2]]
    assert block_proximity(off, wanted) == pytest.approx(11 / 12)
    assert block_proximity(off, wanted, block=2) == 3 / 4
    assert block_proximity(wanted, wanted, block=3) == 1
    assert block_proximity(wanted[:2], wanted) == 0 == block_proximity([[1], [2], [3]], wanted)
    assert block_proximity([[1, 2]], [[1, 3]]) == 1 / 2 and block_proximity([[1, 2]], [[1, 3]], 2) == 0
    assert block_proximity([[1, 2, 3]], [[1, 2]]) == 0
    for wanted, block in (([], 1), ([[]], 1), ([[1]], 0)):
        with pytest.raises(UsageError, match="proximity"):
            block_proximity(wanted, wanted, block)


def test_what_cannot_be() -> None:
    for options in (
        {"tiers": 0},
        {"alpha": -0.1},
        {"alpha": 1.0},
        {"tiers": -1},
        {"tiers": 2, "worth": [1, 0]},
        {"tiers": 2, "worth": [0, 3]},
        {"worth": [0, 1]},
    ):
        with pytest.raises(UsageError):
            make("S019", **options)


def test_it_acts_in_training(tmp_path: Any) -> None:
    """Four choices as near as 0, 0.3, 0.6 and 0.9, none right: the verdict leaves their odds, tiers do not."""
    rows = [[[1.0, False, {"proximity": s}]] for s in (0.0, 0.3, 0.6, 0.9)]
    setting = choices.Setting(rows, spread=0.0, steps=6, prompts=1)
    plain, tiers = (setting.run({"name": name}, 0, tmp_path) for name in ("grpo", "S019"))
    assert plain["choice 3"] == 0.25 and tiers["choice 3"] > 0.6 and tiers["choice 0"] < 0.1
