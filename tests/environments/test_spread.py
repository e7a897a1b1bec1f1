"""Spread: agents by turns, what each sees, and what is noted of a turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, repeats, share

from assay.audit.environment import audit_environment
from assay.environments.base import Action, Snapshots
from assay.environments.hosted.worlds import Worlds
from assay.environments.spread import Spread
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.types import Task


def begun(agents: list[int], marks: list[int], **options: Any) -> Spread:
    world = Spread(len(agents), **options)
    told = world.tasks()[0].prompt
    world.reset(Task("t", told, {"agents": agents, "landmarks": marks}), 0)
    return world


@pytest.mark.parametrize(("agents", "side"), [(2, 2), (3, 5), (6, 4)])
def test_its_plan_passes_and_chance_hardly_does(agents: int, side: int) -> None:
    def make() -> Spread:
        return Spread(agents, side)

    def at_random(world: Spread, shown: Any, rng: np.random.Generator) -> Action:
        return say(shown.admissible[rng.integers(len(shown.admissible))])

    tasks = make().tasks()
    plans = gold_passes(make, tasks, 40)
    repeats(make, tasks, plans[:10])
    comes_back(make, tasks, plans[:10])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=5)
    if side > 2:
        assert share(make, tasks, at_random, 50) <= 0.2
    assert isinstance(make(), Snapshots)


def test_each_agent_sees_its_own_surroundings() -> None:
    world = begun([0, 8], [1, 5], side=3, rounds=5)
    assert world.show(world.state) == (
        "You are agent 1, in row 1, column 1.\nLandmarks, down and right of you: +0 +1; +1 +2\nOther agents: +2 +2"
    )
    assert list(world.actions(world.state)) == ["down", "right", "stay"]
    step = world.step(say("right"))
    assert step.info == {"agent": 0, "near": 0, "nearer": 1, "alone": True} and step.valid and not step.terminated
    assert step.observation.messages[0]["content"] == (
        "You are agent 2, in row 3, column 3.\nLandmarks, down and right of you: -2 -1; -1 +0\nOther agents: -2 -1"
    )
    assert world.verdict().score == 0.5 and world.verdict().passed is False
    step = world.step(say("Up"))
    assert step.terminated and step.info == {"agent": 1, "near": 0, "nearer": 1, "alone": True}
    assert world.verdict().passed and world.verdict().score == 1 and list(world.gold()) == []


def test_a_turn_that_is_lost_is_the_agents_all_the_same() -> None:
    world = begun([0, 1], [2, 3], side=2)
    step = world.step(say("up"))
    said = [m["content"] for m in step.observation.messages]
    assert not step.valid and said[0] == "'up' cannot be done" and said[1].startswith("You are agent 2, in row 1")
    assert step.info == {"agent": 0, "near": 1, "nearer": 0, "alone": True}
    step = world.step(say("left"))
    assert step.info == {"agent": 1, "near": 1, "nearer": 0, "alone": False}
    assert not world.step(say("stay")).truncated and world.step(say("stay")).truncated


def test_the_last_to_arrive_does_so_soonest() -> None:
    """Crossing over would be as many steps together, and take one of them twice as long."""
    world = begun([0, 1], [1, 2], side=3)
    assert [a.text for a in world.gold()] == ["right", "right"]
    world = begun([0, 1], [4, 3], side=3, interface="tool")
    assert list(world.gold()) == [call("act", action="down"), call("act", action="down")]


def test_options_out_of_range() -> None:
    for options in ({"agents": 1}, {"agents": 7}, {"agents": 4, "side": 2}, {"side": 1}, {"rounds": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match="environment 'spread'"):
            Spread(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds("spread", workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(5)]))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []
