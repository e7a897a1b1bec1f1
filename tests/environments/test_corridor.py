"""A corridor: what happens in it, and that all of it can be written down."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats, share

from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.engines.base import Conversing, Sampling, can
from assay.environments.base import Oracle, Snapshots
from assay.environments.corridor import ACTIONS, Corridor
from assay.environments.guess import Guess
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import make_method
from assay.rollout.turns.enumerated import enumerated, every_episode, player
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_walk_by_hand() -> None:
    world = Corridor(rooms=3, moves=5, paid=0.5)
    shown = world.reset(world.task_of(1, 3), 0)
    assert "room 3" in shown.messages[0]["content"] and shown.state == "1, 5 left"
    steps = [world.step(say(a)) for a in ("left", "right", "Right", "sing", "stop")]
    assert [s.reward for s in steps] == [0, 0.5, 0.5, 0, 0]
    assert [s.tag for s in steps] == ["left", "right", "right", None, "stop"]
    assert [s.observation.state for s in steps[:3]] == ["1, 4 left", "2, 3 left", "3, 2 left"]
    assert [s.valid for s in steps] == [True, True, True, False, True]
    assert steps[-1].terminated and world.verdict().passed
    with pytest.raises(RuntimeError, match="reset"):
        world.step(say("left"))


def test_to_be_there_is_not_to_have_stopped_there() -> None:
    world = Corridor(rooms=3, moves=2)
    *steps, verdict = played(world, world.task_of(1, 2), [say("right"), say("left")])
    assert steps[-1].truncated and not verdict.passed
    assert not played(world, world.task_of(1, 3), [say("right"), say("stop")])[-1].passed
    assert not played(world, world.task_of(1, 2), [say("left"), say("right")])[-1].passed
    assert all(t.meta["start"] != t.meta["goal"] for t in world.tasks()._tasks) and world.tasks().size == 4


def test_states_without_a_clock_come_again() -> None:
    world = Corridor(rooms=2, clock=False)
    world.reset(world.task_of(1, 2), 0)
    assert world.step(say("left")).observation.state == "1" and world.step(say("stop")).observation.state == "1 stopped"


def test_doors_are_to_be_opened() -> None:
    world = Corridor(rooms=4, moves=9, doors=3)
    shown = world.reset(world.task_of(1, 4), 0)
    assert "left, right, open or stop" in shown.messages[0]["content"] and shown.state == "1, closed 1 2 3, 9 left"
    steps = [world.step(say(a)) for a in ("right", "open", "right", "left", "right", "right", "open", "open", "jump")]
    assert [s.info["message"] for s in steps] == [
        "The door is closed.",
        "You open door 1.",
        "",
        "",
        "",
        "The door is closed.",
        "You open door 2.",
        "There is no closed door here.",
        "",
    ]
    assert steps[5].observation.messages[0]["content"] == "The door is closed.\nRoom 2, 3 moves left."
    assert steps[6].observation.state == "2, closed 3, 2 left" and steps[-1].truncated
    world.reset(world.task_of(3, 1), 0)
    assert [a.text for a in world.gold()] == ["open", "left", "open", "left", "stop"]
    assert "1. You open door" not in world.step(say("open")).info["message"] == "You open door 2. You open door 3."
    assert Corridor(rooms=14, doors=3).doors == (3, 7, 11) and Corridor(rooms=4, doors=1).doors == (2,)
    assert Corridor().doors == () and Corridor().reset(Corridor().task_of(1, 2), 0).admissible == ACTIONS
    # 1-2 takes three moves, two of them and a stop do not go from 1 to 3.
    assert [t.id for t in Corridor(rooms=3, doors=2, moves=3).tasks()._tasks] == [
        f"corridor/3+2/{a}-{b}" for a, b in ((1, 2), (2, 1), (2, 3), (3, 2))
    ]
    for wrong in (-1, 4):
        with pytest.raises(UsageError, match="fewer than rooms"):
            Corridor(rooms=4, doors=wrong)


def test_its_oracle_knows_the_shortest_way() -> None:
    world = Corridor(rooms=3)
    world.reset(world.task_of(3, 2), 0)
    assert [world.judge(say(a)).passed for a in (*ACTIONS, "sing")] == [True, False, False, False]
    world.step(say("left"))
    assert [world.judge(say(a)).passed for a in ACTIONS] == [False, False, True]


@pytest.mark.parametrize(("interface", "doors"), [("text", 0), ("tool", 0), ("text", 2)])
def test_as_every_environment(interface: Any, doors: int) -> None:
    tasks = Corridor(doors=doors).tasks()

    def make() -> Corridor:
        return Corridor(interface=interface, doors=doors)

    plans = gold_passes(make, tasks, 12)
    idle_fails(make, tasks, n=12)
    repeats(make, tasks, plans)
    ends(make, tasks[0], plans[0])
    comes_back(make, tasks, plans[:-1])
    assert isinstance(make(), Oracle) and isinstance(make(), Snapshots)
    write = say if interface == "text" else lambda line: call("act", action=line)
    passed = share(make, tasks, lambda world, shown, rng: write(str(rng.choice(ACTIONS))), n=12)
    assert passed < 0.6


@pytest.mark.slow
def test_the_audit_passes() -> None:
    worlds = Worlds("corridor", workers=1)
    try:
        source = Corridor().tasks()
        assert all(f.passed and f.of for f in audit_environment(worlds, [source[i] for i in range(3)]))
    finally:
        worlds.close()


def test_what_cannot_be() -> None:
    for options in ({"rooms": 1}, {"moves": 0}):
        with pytest.raises(UsageError, match="'corridor'"):
            Corridor(**options)


# As a tree


def game(tasks: int = 2, **options: Any) -> tuple[Any, Any, MultiTurn]:
    options = {"rooms": 3, "moves": 3, **options}
    world = Corridor(**options)
    asked = [world.tasks()[i] for i in range(tasks)]
    engine = player(world, asked, [ACTIONS], 3)
    with torch.no_grad():
        noise = np.random.default_rng(3).standard_normal(engine.policy.logits[1:].shape)
        engine.policy.logits[1:] += torch.from_numpy(noise)
    return engine, asked, MultiTurn({"name": "corridor", **options}, Sampling(8), turns=3)


def test_every_episode_is_a_leaf() -> None:
    """Two tasks; one way to stop at once, two and four after moves, eight that end by the number of moves."""
    engine, tasks, _ = game()
    tree = engine.policy.tree
    assert can(engine, Conversing) and len(tree) == 2 * (1 + 2 + 4 + 8)
    for path, reward, label in zip(tree.paths, tree.rewards.tolist(), tree.labels, strict=True):
        world = Corridor(rooms=3, moves=3)
        actions = [say(ACTIONS[t]) for t in path[1:]]
        assert label == tasks[path[0]].id
        assert played(world, tasks[path[0]], actions)[-1].score == reward


def test_turns_of_several_words() -> None:
    world = Corridor(rooms=2, moves=1)
    tree, openings = enumerated(world, [world.task_of(1, 2)], [("hm", "well"), ACTIONS], 1)
    assert len(tree) == 6 and tree.depth == 3 and list(openings.values()) == [(0,)]
    engine = player(world, [world.task_of(1, 2)], [("hm", "well"), ACTIONS], 1)
    assert engine.decode([1, 2]) == "well\nstop"


@pytest.mark.slow
def test_what_multi_turn_samples_is_what_the_tree_says() -> None:
    engine, tasks, rollout = game()
    [group] = rollout.collect([Ask(tasks[0], 3000)], engine, np.random.default_rng(0))
    counts = Counter(tuple(e.tokens.tolist()) for e in group.episodes)
    with torch.no_grad():
        chances = engine.policy.leaf_logprobs().exp() * 2  # of the two tasks, this one
    for path, chance in zip(engine.policy.tree.paths, chances.tolist(), strict=True):
        if path[0] == 0:
            assert counts[path[1:]] / 3000 == pytest.approx(
                chance, abs=4 * (chance * (1 - chance) / 3000) ** 0.5 + 1e-9
            )
    batch = Batch.from_groups([group], torch.float64)
    with torch.no_grad():
        logprobs = engine.policy.forward(batch).logprobs
    assert float((logprobs - batch.logprobs)[batch.mask].abs().max()) < 1e-6
    assert torch.equal(batch.turn >= 0, batch.mask)
    assert batch.turn[0].tolist()[: len(group.episodes[0].turns)] == list(range(len(group.episodes[0].turns)))


def test_an_update_from_every_episode_is_the_exact_gradient() -> None:
    """All episodes played by the rollout, each with its chance for a weight, by the trainer's own update."""
    engine, tasks, rollout = game()
    policy = engine.policy
    groups = every_episode(engine, tasks, rollout)
    method = make_method("grpo", credit="reinforce", objective={"name": "reinforce", "aggregation": "sequence_sum"})
    valued = method.value(Batch.from_groups(groups, torch.float64))
    assert valued.rewards.tolist() == policy.tree.rewards.tolist()
    with torch.no_grad():
        valued.weights = policy.leaf_logprobs().exp() * len(valued)
    before = policy.logits.detach().clone()
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    exact = policy.exact_gradient()[1:]
    update(policy, method.objective, valued, optimizer, max_grad_norm=1e9)
    assert torch.allclose((policy.logits.detach() - before)[1:], exact, atol=1e-12) and float(exact.norm()) > 0.01


def test_any_environment_of_few_words_can_be_written_down() -> None:
    world = Guess(most=3, asks=2)
    tasks = {world.tasks()[i].reference["number"]: world.tasks()[i] for i in range(20)}
    tree, _ = enumerated(world, [tasks[3]], [("1", "2", "3")], 2)
    assert len(tree) == 7 and tree.rewards.tolist() == [0, 0, 0.5, 0, 0, 0.5, 1]
    with pytest.raises(UsageError, match="open alike"):
        enumerated(world, [tasks[1], tasks[2]], [("1", "2", "3")], 2)
    with pytest.raises(UsageError, match="more than 50 episodes"):
        enumerated(Corridor(moves=20), [Corridor().task_of(1, 2)], [("left", "right")], 20, most=50)
