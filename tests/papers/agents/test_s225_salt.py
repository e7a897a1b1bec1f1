"""SALT: worked numbers for three notions of the same step, what merges and what does not, what stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from running import metrics, run
from turned import by_turn, turned

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.credit.rloo import RLOO
from assay.credit.turns.salt import Salt
from assay.environments.corridor import ACTIONS
from assay.errors import UsageError
from assay.lab.settings.environment import Setting
from assay.method import make_method
from assay.types import Ask, Episode, Group, Task, ToolCall, Turn, Verdict

TOLD = [
    ["go kitchen", "take mug", "wash mug", "put mug"],
    ["go kitchen", "take mug", "put mug"],
    ["go kitchen", "open fridge", "take mug"],
    ["go hall", "look", "look"],
]
"""What four trajectories do, of which the first alone succeeds."""


def walked(actions: Sequence[Sequence[str]], states: Sequence[Sequence[str]] | None = None, **more: Any) -> Batch:
    """Trajectories of actions; a state is the set of what was done unless told."""
    passed = [row if states is None else states[i] for i, row in enumerate(actions)]
    before, after = [], []
    for i, row in enumerate(passed):
        made = (
            [*row] if states is not None else ["+".join(sorted(set(row[:t]) - {"look"})) for t in range(len(row) + 1)]
        )
        before.append(made[: len(actions[i])])
        after.append(made[1:])
    outcomes = more.pop("outcomes", [1.0] + [0.0] * (len(actions) - 1))
    zeros = [[0.0] * len(row) for row in actions]
    return turned(zeros, outcomes, text=actions, state=before, next_state=after, **more)


def of(credit: Any, batch: Batch) -> list[list[float]]:
    return by_turn(credit(batch), batch)


WANT = {
    0: [[0.1925, 0.5774, 1.7321, 1.7321], [0.1925, 0.5774, -0.5774], [0.1925, -0.5774, -0.5774], [-0.5774] * 3],
    1: [[0.1667, 0.5, 1.5, 1.5], [0.1667, 0.5, -0.5], [0.1667, -0.5, -0.5], [-0.5] * 3],
}


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize(
    "how", [{"window": None}, {"window": 0}, {}, {"states": False}, {"states": False, "window": None}]
)
def test_the_worked_example(ddof: int, how: dict[str, Any]) -> None:
    got = of(Salt({"name": "grpo", "ddof": ddof, "epsilon": 0.0}, **how), walked(TOLD))
    for row, want in zip(got, WANT[ddof], strict=True):
        assert row == pytest.approx(want, abs=1e-4)


def test_an_actions_name_alone_is_refused() -> None:
    """It would give "put mug" of an unwashed mug the half of the praise for a washed one."""
    with pytest.raises(UsageError, match="without states"):
        Salt(states=False, window=0)
    for wrong in ({"window": -1}, {"similar": 1.5}, {"similar": -1.5}, {"base": "reinforce"}, {"base": "gae"}):
        with pytest.raises(UsageError, match="credit 'salt'"):
            Salt(**wrong)


def test_any_group_credit_will_do() -> None:
    batch = walked(TOLD)
    got = of(Salt("rloo"), batch)
    assert got[0] == pytest.approx([1 / 9, 1 / 3, 1, 1]) and got[1] == pytest.approx([1 / 9, 1 / 3, -1 / 3])
    assert of(RLOO(), batch)[3] == got[3]
    assert make_method("S225", options={"base": "rloo"}).credit.base == RLOO()


def test_without_anything_shared_it_is_its_base() -> None:
    batch = walked([["a", "b"], ["c", "b"], ["d"]], [["s", "t", "u"], ["v", "w", "x"], ["y", "z"]])
    assert torch.equal(Salt()(batch), GRPO()(batch))


def test_trajectories_come_together_again() -> None:
    """They part in the first step and meet in state m; the second step from there on is the same, with a window of 0.

    A window of 1 asks for one more step together.
    """
    batch = walked([["a", "c", "d"], ["b", "c", "d"]], [["s", "m", "n", "e"], ["s", "m", "n", "e"]])
    assert of(Salt(window=0), batch) == [
        pytest.approx([0.7071, 0, 0], abs=1e-4),
        pytest.approx([-0.7071, 0, 0], abs=1e-4),
    ]
    one = of(Salt(window=1), batch)
    assert one[0] == pytest.approx([0.7071, 0.7071, 0], abs=1e-4)
    assert of(Salt(), batch) == of(make_method("S225").credit, batch) == one and Salt().group_relative
    assert of(Salt(window=None), batch)[0] == pytest.approx([0.7071] * 3, abs=1e-4)
    assert of(Salt(window=2), batch)[0] == pytest.approx([0.7071] * 3, abs=1e-4)


def test_where_a_step_leads_tells_it_apart() -> None:
    batch = walked([["a"], ["a"], ["a"]], [["s", "t"], ["s", "u"], ["s", "u"]])
    assert of(Salt("rloo"), batch) == [[1], [pytest.approx(-0.5)], [pytest.approx(-0.5)]]


def test_a_trajectory_that_takes_a_step_twice_counts_once() -> None:
    """Two looks of a trajectory that fails and one of a trajectory that succeeds: half and half, not a third."""
    batch = walked([["look", "look"], ["look"]], [["s", "s", "s"], ["s", "s"]], outcomes=[0.0, 1.0])
    assert of(Salt(window=0), batch) == [pytest.approx([0, 0]), pytest.approx([0])]


def test_groups_share_nothing_and_what_is_dropped_does_not_count() -> None:
    states = [["s", "t"]] * 4
    batch = walked([["a"]] * 4, states, outcomes=[1.0, 0.0, 0.0, 1.0], groups=["g", "g", "h", "h"])
    assert of(Salt(), batch) == [[0]] * 4
    batch = walked([["a"], ["a"], ["b"]], states[:3], outcomes=[1.0, 5.0, 0.0])
    batch.valid[1] = False
    got = of(Salt(), batch)
    assert (
        got[0] == pytest.approx([0.7071], abs=1e-4) and got[1] == [0] and got[2] == pytest.approx([-0.7071], abs=1e-4)
    )


def test_without_states_what_the_world_said_tells() -> None:
    """Tokens between turns are the states; of the first turn the prompt, which a group has in common."""
    batch = turned([[0.0, 0.0]] * 3, [1.0, 0.0, 0.0], text=[["a", "b"], ["a", "b"], ["a", "b"]])
    assert of(Salt(window=0), batch) == [pytest.approx([0, 0])] * 3
    said = batch.episodes[0].tokens.copy()
    said[2] = 7  # after the first turn of the first trajectory
    batch.episodes = [replace(batch.episodes[0], tokens=said), *batch.episodes[1:]]
    assert of(Salt("rloo", window=0), batch) == [[1, 1], *[pytest.approx([-0.5, -0.5])] * 2]
    assert of(Salt("rloo", states=False), batch) == [pytest.approx([0, 0])] * 3


SPOKEN = [(0, 1), (2, 4), (4, 5), (6, 7)]
"""Of four turns, the third begins where the second ends; the world speaks after the others."""


@pytest.mark.parametrize(
    ("place", "apart"),
    [
        (1, [1, 1, 0, 0]),  # after the first turn, before the second
        (5, [0, 0, 1, 1]),  # between the third and the fourth
        (7, [0, 0, 0, 1]),  # after the last
        (2, [0, 0, 0, 0]),  # the second turn's own: its wording, not a state
        (4, [0, 0, 0, 0]),
    ],
)
def test_a_state_is_what_was_said_between_two_turns(place: int, apart: list[int]) -> None:
    """Two trajectories differ in one token: only the steps that it stands beside are told apart."""
    batch = spoken(SPOKEN, place)
    assert of(Salt("rloo", window=0), batch) == [apart, [-x for x in apart]]


def test_what_the_world_says_before_the_first_turn_is_a_state() -> None:
    batch = spoken([(1, 2), (3, 4)], 0)
    assert of(Salt("rloo", window=0), batch) == [[1, 0], [-1, 0]]


def spoken(turns: Sequence[tuple[int, int]], place: int) -> Batch:
    """Two trajectories of the same actions and tokens but one at ``place``; the first alone succeeds."""
    groups = []
    for i, outcome in enumerate((1.0, 0.0)):
        tokens, mask = np.zeros(turns[-1][1] + 1, dtype=np.int64), np.zeros(turns[-1][1] + 1, dtype=bool)
        tokens[place] = i
        for start, end in turns:
            mask[start:end] = True
        made = tuple(Turn(t, start, end, text=f"go {t}") for t, (start, end) in enumerate(turns))
        episode = Episode(tokens[:0], tokens, mask, None, "", "eos", turns=made, trajectory=str(i), advantage_group="g")
        groups.append(Group(Ask(Task(str(i), ""), 1), (episode,), (Verdict(outcome, outcome > 0),)))
    batch = Batch.from_groups(groups, torch.float64)
    batch.rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return batch


def test_what_an_action_is() -> None:
    same = walked([["I think.\nGo  north"], ["Well.\n<action>go north</action>"], ["go south"]], [["s", "t"]] * 3)
    assert of(Salt("rloo"), same) == [pytest.approx([0.25]), pytest.approx([0.25]), pytest.approx([-0.5])]
    assert of(Salt("rloo", same="text"), same)[0] == [1]
    one, two = ToolCall("run", {"b": 1, "a": 2}, 0, 1), ToolCall("run", {"a": 2, "b": 1}, 5, 6)
    other = replace(one, arguments={"a": 3})
    calls = walked([["x"], ["y"], ["x"]], [["s", "t"]] * 3, calls=[[(one,)], [(two,)], [(other,)]])
    assert of(Salt("rloo"), calls) == [pytest.approx([0.25]), pytest.approx([0.25]), pytest.approx([-0.5])]


def test_turns_whose_text_was_not_kept_are_told_by_their_tokens() -> None:
    batch = turned([[0.0]] * 3, [1.0, 0.0, 0.0], state=[["s"]] * 3, next_state=[["t"]] * 3)
    assert of(Salt("rloo"), batch) == [pytest.approx([0])] * 3
    said = batch.episodes[0].tokens.copy()
    said[0] = 7
    batch.episodes = [replace(batch.episodes[0], tokens=said), *batch.episodes[1:]]
    assert of(Salt("rloo"), batch)[0] == [1]


def test_actions_of_like_meaning() -> None:
    vectors = {"take": [1, 0], "grab": [0.9, 0.436], "hold": [0.62, 0.785], "drop": [-1, 0]}
    embed = lambda texts: np.array([vectors[t] for t in texts])  # noqa: E731
    batch = walked([[a] for a in vectors], [["s", "t"]] * 4)
    credit = Salt("rloo", similar=0.85, embed=embed)
    # "hold" is like "grab" but not like "take", which was there before.
    assert of(credit, batch) == [pytest.approx([1 / 3]), pytest.approx([1 / 3]), *[pytest.approx([-1 / 3])] * 2]
    assert of(Salt("rloo", similar=1.0, embed=embed), batch)[0] == [1]
    # The cosine itself suffices: of 1 between two of one direction, of -1 between any two.
    assert of(Salt("rloo", similar=-1.0, embed=embed), batch) == [[pytest.approx(0)]] * 4
    vectors["grab"] = [2, 0]
    assert of(Salt("rloo", similar=1.0, embed=embed), batch)[1] == [pytest.approx(1 / 3)]


shapes = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=4), min_size=2, max_size=5)


@settings(max_examples=40)
@given(shapes, st.sampled_from([0, 1, None]), st.data())
def test_the_advantages_of_a_step_add_up(actions, window, data) -> None:
    """Over its trajectories they are what they were: an update of tokens that are alike is the same.

    A trajectory that takes a step again is left out of that, as it counts once.
    """
    outcomes = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(actions), max_size=len(actions)))
    batch = walked(actions, [[*range(len(row) + 1)] for row in actions], outcomes=outcomes)  # a state for each time
    credit = Salt(window=window)
    got, base = of(credit, batch), of(GRPO(), batch)
    total: dict[Any, list[float]] = {}
    for row, plain, said in zip(got, base, actions, strict=True):
        for t, (x, y) in enumerate(zip(row, plain, strict=True)):
            since = 0 if window is None else max(0, t - window)
            one = total.setdefault((t, tuple(said[since : t + 1])), [0.0, 0.0])
            one[0], one[1] = one[0] + x, one[1] + y
    assert all(x == pytest.approx(y, abs=1e-9) for x, y in total.values())


def test_no_turns() -> None:
    assert Salt()(Batch.from_groups([], torch.float64)).shape == (0, 0)


@pytest.mark.slow
def test_thoughts_are_moved_less() -> None:
    """A corridor of two rooms: six thoughts of no consequence before each action."""
    made = Setting(
        environment={"name": "corridor", "rooms": 2, "moves": 2},
        words=(("a", "b", "c", "d", "e", "f"), ACTIONS),
        tasks=(0,),
        turns=2,
        prompts=1,
        steps=40,
    )
    plain, merged = (made.run({"name": name}, 0, Path()) for name in ("grpo", "S225"))
    assert merged["moved/0"] < 0.9 * plain["moved/0"] and merged["rollouts"] == plain["rollouts"]


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "guess", "most": 5}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.2},
        warmup={"steps": 0},
        method={"name": "S225", "reward": "verdict", "rollout": {"name": "multi_turn", "environment": world}},
        rollout={"prompts": 4, "group": 8, "max_tokens": 2, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(rows) == 2 and any(m["grad_norm"] > 0 for m in rows)
