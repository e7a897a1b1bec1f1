"""PROF: who is kept, by the code's rounding and by hand, and what is learned from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from marked import signalled, stepped
from running import metrics, run

from assay.errors import UsageError
from assay.method import Method, make_method
from assay.papers.process.s060_prof import Consistent, blend, dropped, prof

pytestmark = pytest.mark.usefixtures("one_thread")


def kept(rows, passed, groups=None, **options):
    """Which samples are kept."""
    select = Consistent(**{"prm": "verdict"} | options)
    batch = signalled(stepped(rows, passed, groups=groups), Method(select=select))
    return select(batch).tolist()


MARKS = [[0.9, 0.8, 0.1], [0.9, 0.9, 0.9], [0.2, 0.4], [0.8, 0.8, 0.8]]
OUTCOMES = [True, True, False, False]


def test_consistency_and_what_it_drops() -> None:
    """Right A and B, wrong C and D; A has a bad step, D none."""
    select = Consistent("verdict", keep=2)
    batch = signalled(stepped(MARKS, OUTCOMES), Method(select=select))
    s, told = select.consistency(batch, torch.tensor(OUTCOMES))
    assert s.tolist() == pytest.approx([-0.163636, 0.436364, 0.763636, -0.236364], abs=1e-6) and bool(told.all())
    assert select(batch).tolist() == [0, 1, 1, 0]
    assert select.metrics() == {"prof/kept": 0.5, "prof/right": 0.5} and select.state_dict() == {"done": 1}
    # A part is known by its options, not by how far it has come.
    fresh = Consistent("verdict", keep=2)
    assert select == fresh and repr(select) == repr(fresh) and "StepScores" not in repr(select)
    for name in ("signal", "_done", "_kept"):
        with pytest.raises(TypeError):
            Consistent("verdict", **{name: None})


@pytest.mark.parametrize(
    ("right", "wrong", "k", "left"),
    [
        (6, 2, 4, (2, 2)),
        (7, 1, 4, (3, 1)),
        (5, 3, 4, (2, 2)),
        (8, 0, 4, (4, 0)),
        (0, 8, 4, (0, 4)),
        (1, 7, 2, (1, 5)),
        (1, 7, 4, (1, 3)),
        (5, 3, 3, (3, 2)),
        (4, 4, 3, (2, 3)),
        (3, 5, 3, (3, 2)),
        (4, 4, 0, (4, 4)),
    ],
)
def test_how_many_are_kept(right, wrong, k, left) -> None:
    q = dropped(right, wrong, k)
    assert (right - q, wrong - (k - q)) == left
    rows = [[0.1 * (i + 1), 0.5] for i in range(right + wrong)]
    found = kept(rows, [True] * right + [False] * wrong, keep=right + wrong - k)
    assert (sum(found[:right]), sum(found[right:])) == left
    # Of right ones those with the lowest scores go, of wrong ones those with the highest.
    assert found[:right] == sorted(found[:right]) and found[right:] == sorted(found[right:], reverse=True)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 18))
def test_a_class_gives_no_more_than_it_has(right, wrong, k) -> None:
    k = min(k, right + wrong)
    q = dropped(right, wrong, k)
    assert 0 <= q <= right and 0 <= k - q <= wrong
    gap = abs((right - q) - (wrong - (k - q)))
    best = min(abs((right - j) - (wrong - (k - j))) for j in range(max(k - wrong, 0), min(k, right) + 1))
    assert gap <= best + 1, "no other numbers are nearer to equal"


def test_step_counts_go_first_in_both_classes() -> None:
    """The best right one and the best wrong one have a single step; of 31 steps neither."""
    rows = [[1.0], [0.6, 0.6], [0.0], [0.9, 0.9]]
    assert kept(rows, OUTCOMES, keep=2) == [0, 1, 0, 1]
    assert kept(rows, OUTCOMES, keep=2, bounds=(1, 30)) == [1, 0, 1, 0]
    long = [[1.0] * 31, [0.6] * 30, [0.0] * 31, [0.9] * 30]
    assert kept(long, OUTCOMES, keep=2) == [0, 1, 0, 1] and kept(long, OUTCOMES, keep=2, penalty=0) == [1, 0, 1, 0]
    select = Consistent("verdict")
    batch = signalled(stepped([[], [0.5, 0.5]], [True, True]), Method(select=select))
    assert select.consistency(batch, torch.tensor([True, True]))[0].tolist() == [-10, 0], "no step: 0 less the penalty"


def test_what_scores_are_reduced_to() -> None:
    """By its worst step the first goes, by the sum of centred scores the second, of which there are fewer."""
    rows = [[0.9, 0.9, 0.9, 0.3], [0.7, 0.7]]
    assert kept(rows, [True, True], keep=1) == [1, 0]
    assert kept(rows, [True, True], keep=1, reduce="min") == [0, 1]
    three = [[0.6, 0.6], [0.6] * 4, [0.2, 0.2, 0.2]]
    assert kept(three, [True] * 3, keep=1, reduce="sum") == [0, 1, 0]
    assert kept(MARKS, OUTCOMES, keep=2, apart=False) == [0, 1, 1, 0]
    assert kept(MARKS, OUTCOMES, keep=3, apart=False) == [1, 1, 1, 0]
    unequal = [True, True, True, False]
    assert kept([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9], [1.0, 1.0]], unequal, keep=2, apart=False) == [0, 1, 1, 0]
    assert kept([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9], [1.0, 1.0]], unequal, keep=2) == [0, 0, 1, 1]


@pytest.mark.parametrize(("reduce", "want"), [("mean", [0.3, 0.6, 0]), ("min", [0, 0.6, 0]), ("sum", [0.6, 0.6, 0])])
def test_each_reduction_by_hand(reduce, want) -> None:
    """Scores .8, .5 of a right one and .2 of a wrong one are .6, 0 and -.6 about their mean; no steps are worth 0."""
    select = Consistent("verdict", reduce=reduce, penalty=0.0)
    batch = signalled(stepped([[0.8, 0.5], [0.2], []], [True, False, True]), Method(select=select))
    s, _ = select.consistency(batch, torch.tensor([True, False, True]))
    assert s.tolist() == pytest.approx(want, abs=1e-6)


def test_a_positive_factor_changes_nothing() -> None:
    halved = [[p / 2 for p in row] for row in MARKS]
    assert kept(halved, OUTCOMES, keep=2) == kept(MARKS, OUTCOMES, keep=2)


def test_advantages_are_of_those_kept() -> None:
    """Of six right and two wrong ones two and two are kept; they are compared with each other alone."""
    rows = [[0.1 * (i + 1), 0.5] for i in range(8)]
    batch = stepped(rows, [True] * 6 + [False] * 2)
    method = make_method("S060", options={"prm": "verdict", "kl_weight": 0.0})
    method.value(signalled(batch, method))
    found = batch.advantages[:, 0].tolist()
    assert found == pytest.approx([0] * 4 + [0.866025] * 2 + [-0.866025] * 2, abs=2e-6)
    plain = make_method("grpo").value(stepped(rows, [True] * 6 + [False] * 2)).advantages[:, 0].tolist()
    assert plain == pytest.approx([0.540062] * 6 + [-1.620185] * 2, abs=5e-6)
    alike = stepped(rows[:6], [True] * 6)
    method.value(signalled(alike, method))
    assert alike.weights.sum() == 4 and not bool(alike.advantages.any())
    few = stepped(rows[:3], [True, False, True])
    method.value(signalled(few, method))
    assert torch.allclose(few.advantages, make_method("grpo").value(stepped(rows[:3], [True, False, True])).advantages)


def test_groups_apart_and_those_who_do_not_count() -> None:
    groups = [0, 0, 0, 1, 1, 1]
    rows = [[0.1, 0.1], [0.9, 0.9], [0.5, 0.5]] * 2
    assert kept(rows, [True] * 6, groups, keep=1) == [0, 1, 0, 0, 1, 0]
    unscored = stepped([*rows[:2], None], [True] * 3, [[1, 1]] * 3)
    select = Consistent("verdict", keep=2)
    assert select(signalled(unscored, Method(select=select))).tolist() == [1, 1, 0]
    unscored.valid[0] = False
    assert select(unscored).tolist() == [0, 1, 0]
    # One score that is missing leaves a response out, and its other scores out of the mean over the batch.
    batch = signalled(stepped([[0.9, 0.5], [0.2, 0.2], [0.6, 0.4]], [True] * 3), Method(select=select))
    batch.signals["step_scores"][0, 1] = torch.nan
    s, told = select.consistency(batch, torch.tensor([True] * 3))
    assert told.tolist() == [False, True, True] and s[1:].tolist() == pytest.approx([-0.3, 0.3])
    nothing = signalled(stepped([None, None], [True, False], [[1, 1]] * 2), Method(select=select))
    assert select(nothing).tolist() == [0, 0] and select.metrics() == {"prof/kept": 0, "prof/right": 0}


def test_a_score_of_one_half_is_not_right() -> None:
    """Of three with it and one right one, one of each goes by its class: of the wrong ones the best."""
    rows = [[0.9, 0.9], [0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]
    select = Consistent("verdict", keep=2)
    batch = signalled(stepped(rows, [True] * 4), Method(select=select))
    batch.verdicts = [v if i == 0 else replace(v, score=0.5) for i, v in enumerate(batch.verdicts)]
    assert select(batch).tolist() == [1, 1, 0, 0] and select.metrics()["prof/right"] == 0.5


def test_wrong_ones_at_random() -> None:
    """As many of each class go; the right ones by their scores, the wrong ones by lot, another at another step."""
    rows = [[0.1 * (i + 1), 0.5] for i in range(8)]
    passed = [True] * 4 + [False] * 4
    select = Consistent("verdict", keep=4, filter="correct")
    batch = signalled(stepped(rows, passed), Method(select=select))
    for i, episode in enumerate(batch.episodes):
        episode.tokens[:] = i
    found = [select(batch).tolist() for _ in range(40)]
    assert all(f[:4] == [0, 0, 1, 1] and sum(f[4:]) == 2 for f in found)
    assert 0.2 < sum(f[4] for f in found) / 40 < 0.8 and len({tuple(f) for f in found}) > 3
    again = Consistent("verdict", keep=4, filter="correct")
    again.load_state_dict({"done": 7})
    assert again(batch).tolist() == found[7], "a resumed run draws the same"
    wrong = Consistent("verdict", keep=4, filter="wrong")(batch).tolist()
    assert wrong[4:] == [1, 1, 0, 0] and sum(wrong[:4]) == 2
    anyone = Consistent("verdict", keep=4, filter="random")
    by_lot = [anyone(batch).tolist() for _ in range(20)]
    assert len({tuple(f[:4]) for f in by_lot}) > 2 and len({tuple(f[4:]) for f in by_lot}) > 2, "of both classes"


def test_the_blend_it_is_compared_with() -> None:
    means = [[0.6, 0.6], [0.9, 0.9], [0.3, 0.3], [0.8, 0.8]]
    batch, method = stepped(means, OUTCOMES), blend("verdict", kl_weight=0.0)
    method.value(signalled(batch, method))
    worth = batch.rewards + batch.token_rewards.sum(-1)
    assert worth.tolist() == pytest.approx([1.48, 1.72, 0.24, 0.64])
    found = batch.advantages[:, 0].tolist()
    assert found == pytest.approx([0.660657, 1.005347, -1.120244, -0.545760], abs=3e-6)


def test_options() -> None:
    for bad in ({"keep": 0}, {"penalty": -1.0}, {"bounds": (3, 2)}):
        with pytest.raises(UsageError, match="S060"):
            Consistent(**{"prm": "verdict"} | bad)
    with pytest.raises(UsageError, match="needs prm"):
        make_method("S060")
    assert Consistent("verdict", keep=1, penalty=0.0, bounds=(0, 0)).bounds == (0, 0)
    made = prof("verdict")
    assert made.select == Consistent("verdict")
    assert made.select == Consistent("verdict", 4, "both", "mean", True, 10.0, (2, 30))
    assert (made.objective.kl_weight, made.objective.kl_estimator) == (0.001, "k3")
    assert (blend("verdict").reward.alpha, blend("verdict").objective.kl_weight) == (0.8, 0.001)


def halves(task, steps) -> list[float]:
    """Steps after the first are bad."""
    return [0.8 if k == 0 else -0.8 for k in range(len(steps))]


def test_a_run_keeps_half(tmp_path: Path) -> None:
    options = {"prm": f"{__file__}:halves", "steps": {"by": "fixed", "size": 1}, "keep": 2, "bounds": [1, 9]}
    folder = run(
        tmp_path / "run",
        method={"name": "S060", "options": options},
        rollout={"group": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["prof/kept"] for row in rows] == [0.5, 0.5]


@pytest.mark.slow
def test_fewer_miracles() -> None:
    filtered, every = (learned("S060", arm, steps=30, lr=2.0) for arm in ("prof", "all"))
    assert filtered["honest"] > every["honest"] + 0.1 and filtered["rollouts"] == every["rollouts"]
