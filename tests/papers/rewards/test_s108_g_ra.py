"""S108: the cascade by hand over real turns, what the sum prefers, and shares of completion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from claimed import learned
from sandbox.support import needs_sandbox

from assay.catalogue import make
from assay.environments.repository.environment import Repository
from assay.environments.tools import call
from assay.errors import UsageError
from assay.papers.rewards.s108_g_ra import HandedIn, completion
from assay.registry import build
from assay.rewards.process.turns import TurnRewards
from assay.types import ToolCall, Turn, Verdict

NAMED = ("format", "tools")

pytestmark = pytest.mark.usefixtures("one_thread")


def episodes(batch: Any, rewards: list[list[dict[str, float]]]) -> Any:
    """Give each response one token a turn, with these rewards."""
    batch.episodes = [
        replace(e, turns=tuple(Turn(t, t, t + 1, info=r) for t, r in enumerate(turns)))
        for e, turns in zip(batch.episodes, rewards, strict=True)
    ]
    return batch


@pytest.mark.parametrize(
    ("levels", "expected"), [((0, 0.3, 0.5), 0), ((1, 0.3, 0.5), 1.8), ((1, -0.1, 0.5), 0.9), ((1, 0.0, 0.5), 1)]
)
def test_the_cascade_by_hand(
    make_batch: Callable[..., Any], levels: tuple[float, float, float], expected: float
) -> None:
    outcome, form, tools = levels
    batch = make_batch([2], rewards=[float(outcome)], passed=[bool(outcome)])
    batch = episodes(batch, [[{"format": form, "tools": tools / 2}, {"tools": tools / 2}]])
    reward = make("S108", turns=NAMED).reward(batch)
    assert reward.values.item() == pytest.approx(expected)
    assert set(reward.terms) == {"outcome", "format", "tools"}


def test_the_sum_prefers_to_spin_and_the_gate_to_submit(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([10, 3], rewards=[0.0, 0.5], passed=[False, True])
    batch = episodes(batch, [[{"format": 0.1}] * 10, [{"format": 0.1}] * 3])
    summed = {"name": "weighted", "terms": {"outcome": "verdict", "format": TurnRewards("format", placed=False)}}
    assert build("reward", summed)(batch).values.tolist() == pytest.approx([1.0, 0.8])
    assert make("S108", turns=NAMED).reward(batch).values.tolist() == pytest.approx([0, 0.8])
    assert make("S108", turns=NAMED, gates={"outcome": 0.5}).reward(batch).values.tolist() == pytest.approx([0, 0.5]), (
        "too high"
    )
    assert make("S108", turns=NAMED, gates={"outcome": -0.1}).reward(batch).values.tolist() == pytest.approx(
        [1, 0.8]
    ), "too low"


def test_turns(make_batch: Callable[..., Any]) -> None:
    """Immediate rewards add up over an episode's turns: what is told of every turn, and what an environment adds."""
    batch = make_batch([4, 2], rewards=[1.0, 0.0], passed=[True, False])
    call = ToolCall("run", {}, 0, 1)
    unread = replace(call, problem="not_json")
    turns = (Turn(0, 0, 1, (call, unread)), Turn(1, 1, 2, valid=False), Turn(2, 3, 4, (call,), info={"edits": 0.25}))
    batch.episodes = [replace(batch.episodes[0], turns=turns), batch.episodes[1]]
    reward = make("S108", turns=("valid", "calls", "edits")).reward(batch)
    assert {name: term[0].item() for name, term in reward.terms.items()} == {
        "outcome": 1,
        "valid": 2,
        "calls": 2,
        "edits": 0.25,
    }
    assert reward.values.tolist() == [5.25, 0]
    assert make("S108", discount=0.5).reward(batch).values.tolist() == [1 + 1.25 + 1.25, 0]


def test_an_abstention_has_no_reward(make_batch: Callable[..., Any]) -> None:
    reward = make("S108", turns=NAMED).reward(
        episodes(make_batch([1, 1], passed=[None, False]), [[{"format": 1.0}], []])
    )
    assert reward.valid is not None and reward.valid.tolist() == [False, True]


def told(score: float, passed: bool | None, submitted: float, modified: float) -> Verdict:
    return Verdict(score, passed, {"submitted": submitted, "modified": modified})


def test_completion(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1] * 4)
    batch.verdicts = [told(1, True, 1, 1), told(0, False, 1, 0), told(0, False, 0, 0), told(0, None, 1, 1)]
    assert completion(batch) == pytest.approx({"completed": 2 / 3, "modified": 1 / 3, "resolved": 1 / 3})
    assert completion(make_batch([1], passed=[False])) == {"completed": 0, "modified": 0, "resolved": 0}
    assert completion(make_batch([1], passed=[None])) == {}


def test_what_was_handed_in(make_batch: Callable[..., Any]) -> None:
    batch = make_batch([1] * 6)
    rest = [told(1, True, 0, 1), told(0.5, False, 1, 0), told(0.5, False, 1, 1), told(1, True, 1, 1)]
    batch.verdicts = [Verdict(0.25, False), Verdict(0.25, False, {"submitted": 1.0}), *rest]
    assert HandedIn()(batch).values.tolist() == [0.25, 0.25, 0, 0, 0.75, 1]


@needs_sandbox
def test_in_a_repository_only_a_change_that_is_submitted_opens_the_gate(make_batch: Callable[..., Any]) -> None:
    """Two turns with a call each are worth 2 + 2, beside a half for a change handed in and a half for the tests."""
    world = Repository(modules=1, hidden=3, calls=9)
    spoiled, submit = call("write", path="more.py", content="x = 1\n"), call("submit")
    plans = [[call("files"), submit], [spoiled, call("files")], [spoiled, submit], None]
    verdicts = []
    for plan in plans:
        world.reset(world.tasks()[0], 0)
        steps = world.gold() if plan is None else plan
        assert len(steps) == 2
        for action in steps:
            world.step(action)
        verdicts.append(world.verdict())
    batch = episodes(make_batch([2] * 4), [[{"calls": 1.0, "valid": 1.0}] * 2] * 4)
    turns = tuple(Turn(t, t, t + 1, (ToolCall("files", {}, 0, 1),)) for t in range(2))
    batch.episodes, batch.verdicts = [replace(e, turns=turns) for e in batch.episodes], verdicts
    assert make("S108").reward(batch).values.tolist() == [0, 0, 4.5, 5]
    assert completion(batch) == {"completed": 0.75, "modified": 0.75, "resolved": 0.25}


def test_what_cannot_be() -> None:
    for make_it in (
        lambda: make("S108", gates={"nothing": 1.0}),
        lambda: make("S108", levels={}),
        lambda: make("S108", discount=0.0),
    ):
        with pytest.raises(UsageError):
            make_it()


@pytest.mark.slow
def test_a_policy_learns_to_submit() -> None:
    """Ten well-formed turns without a submission against three that submit, after 20 steps."""
    gated, summed = (learned("S108", arm, steps=20) for arm in ("gated", "sum"))
    assert gated["right"] > 0.95 and summed["right"] < 0.05
