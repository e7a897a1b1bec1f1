"""S019: tiers and proximities by hand, and that no wrong response outranks a right one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from running import metrics, run

from assay.catalogue import make
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits import choices
from assay.papers.rewards.s019_ssl import SweetSpot, gaussian_proximity
from assay.types import Span, Task, Turn, Verdict
from assay.verify.geometry.point import Point
from assay.verify.kind import KindVerifier
from assay.verify.puzzles.blocks import Grid, block_proximity

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


SOLUTION = "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1"


def answered(reference: Any, text: str, **options: Any) -> Verdict:
    return Grid(**options)(Task("t", "?", reference, "grid"), f"<answer>{text}</answer>")


def test_a_grid_is_compared_block_by_block(make_batch: Callable[..., Any]) -> None:
    """One cell is wrong, two of the same block, two of different ones: 15, 14 and 14 of 16 cells, 3, 3 and 2 boxes."""
    one, box, two = (SOLUTION.replace(*x, 1) for x in (("1 2 3", "9 2 3"), ("1 2 3", "9 9 3"), ("1 2 3", "9 2 9")))
    for block, shares in ((1, (15 / 16, 14 / 16, 14 / 16)), (2, (3 / 4, 3 / 4, 1 / 2)), (3, (3 / 4, 3 / 4, 3 / 4))):
        for text, share in zip((one, box, two), shares, strict=True):
            verdict = answered({"solution": SOLUTION}, text, block=block)
            assert verdict.passed is False and verdict.score == 0 and verdict.parts["proximity"] == share, (block, text)
            assert answered({"solution": SOLUTION, "block": block}, text) == verdict, "the task says it"
    assert answered({"solution": SOLUTION}, one).feedback == "row 1, column 1 is 1, not '9'"
    assert answered({"solution": SOLUTION}, one, partial=True, block=2).score == 0.75
    right = answered({"solution": SOLUTION}, SOLUTION)
    assert right.passed is True and right.parts == {"format": 1.0, "proximity": 1.0}
    batch = make_batch([1] * 4, tasks=[Task("t", "?", {"solution": SOLUTION, "block": 2}, "grid")] * 4)
    batch.verdicts = [
        KindVerifier()(task, text) for task, text in zip(batch.tasks, (SOLUTION, one, two, "?"), strict=True)
    ]
    assert make("S019").reward(batch).values.tolist() == pytest.approx([1.5, 0.5, 1 / 3, 0])


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("1234\n3412\n2143\n4321", 1),
        ("[[1,2,3,4],[3,4,1,2],[2,1,4,3],[4,3,2,1]]", 1),
        ("[[1, 2, 3, 4],\n [3, 4, 1, 2],\n [2, 1, 4, 3],\n [4, 3, 2, 1]]", 1),
        ("| 1 2 | 3 4 |\n| 3 4 | 1 2 |\n|-----+-----|\n| 2 1 | 4 3 |\n| 4 3 | 2 1 |", 1),
        ("1 1 1 1\n1 1 1 1\n1 1 1 1\n1 1 1 1\n\nno, better is\n1234\n3412\n2143\n4311\nI think", 15 / 16),
        ("1 2 3 4\n3 4 1 2\n2 1 4 3", 0),
        ("1 2 3 4 5\n3 4 1 2 5\n2 1 4 3 5\n4 3 2 1 5", 0),
        ("1 2 3 4\nand\n3 4 1 2\n2 1 4 3\n4 3 2 1", 0),
    ],
)
def test_where_a_grid_stands(text: str, near: float) -> None:
    verdict = answered({"solution": SOLUTION}, text)
    assert verdict.passed is (near == 1) and verdict.parts["proximity"] == near
    assert near or (verdict.parts["format"] == 0 and verdict.feedback == "no 4 lines of 4 cells in the answer")


def test_cells_may_be_words_or_any_characters() -> None:
    for solution in ([["red", "blue"], ["10", "2"]], "red blue\n10 2"):
        assert answered({"solution": solution}, "red, blue\n10, 2").passed is True
        assert answered({"solution": solution}, "red, blue\n1, 02").parts["proximity"] == 0.5
    assert answered({"solution": [["-", "+"], ["=", "-"]]}, "- +\n= -").passed is True
    assert answered({"solution": "#.#\n#..\n"}, "#.#\n#..").passed is True
    assert answered({"solution": [[1], [0]]}, "1\n0").passed is True
    for solution in ([], [[1, 2], [3]], [["a b"]], [[""]], [[1] * 101], [[1]] * 101, 7):
        assert answered({"solution": solution}, "1").passed is None, solution
    assert answered({}, "1").passed is None and answered({"solution": "1", "block": 0}, "1").passed is None
    with pytest.raises(UsageError, match="verifier 'grid': block 0 must be at least 1"):
        Grid(block=0)


def test_a_run_on_grids(tmp_path: Any) -> None:
    """Four digits in a row, of which untrained models get some right: a reward below 1 for what is wrong."""
    rows = [{"prompt": f"{i // 4}{i % 4}", "reference": {"solution": f"{i % 4}{i // 4}01"}} for i in range(12)]
    (tmp_path / "grids.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = {"name": "file", "path": str(tmp_path / "grids.jsonl"), "reference": "reference", "kind": "grid"}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 12, "alphabet": "0123"}},
        tasks={"source": source, "eval_size": 2},
        method={"name": "S019", "reward": None},
        warmup={"steps": 0},
        train={"steps": 2, "epochs": 1},
        evaluate={"every": 0},
    )
    found = metrics(folder)
    assert len(found) == 2 and all(row["pass_rate"] < 1 and row["grad_norm"] > 0 for row in found)
    for row in found:
        assert row["reward/mean"] == pytest.approx(row["reward/verdict"] + row["reward/tier"] / 2)
        # In K tiers worth k / (K - 1), nothing is worth more than 4/3 of how near it is, nor less by 1/3.
        assert row["reward/proximity"] * 4 / 3 - 1 / 3 < row["reward/tier"] < row["reward/proximity"] * 4 / 3 + 1e-6
        assert 0 < row["reward/proximity"] < 1 and row["reward/tier"] > 0


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
