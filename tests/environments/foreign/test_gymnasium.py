"""Gymnasium's environments are played as they are: the same rewards, ends and verdicts as played without us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from acted import idle_fails, played, repeats
from running import metrics, run

from assay.environments.base import EnvironmentFailure
from assay.environments.foreign.gymnasium import Gymnasium
from assay.environments.played import Played
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

OWN = f"{Path(__file__).with_name('gym_worlds.py')}:Echo"
WORLDS: dict[str, dict[str, Any]] = {
    "FrozenLake-v1": {"show": "render", "actions": ["left", "down", "right", "up"]},
    "CartPole-v1": {"passes": 20.0, "returns": (0.0, 50.0)},
    "Blackjack-v1": {"passes": 1.0},
}


def test_verdicts_are_theirs_on_a_hundred_trajectories() -> None:
    passed = 0
    for k in range(102):
        id = list(WORLDS)[k % 3]
        ours, theirs, rng = Gymnasium(id, **WORLDS[id]), gymnasium.make(id), np.random.default_rng([1, k])
        task = ours.tasks()[k]
        ours.reset(task, k)
        theirs.reset(seed=task.meta["seed"])
        total, names = 0.0, WORLDS[id].get("actions")
        for _ in range(200):
            made = int(rng.integers(theirs.action_space.n))  # type: ignore[attr-defined]
            step = ours.step(say(f"I think so.\n{names[made] if names else made}"))
            _, reward, terminated, truncated, _ = theirs.step(made)
            total += float(reward)
            assert (step.reward, step.terminated, step.truncated) == (float(reward), terminated, truncated)
            if terminated or truncated:
                break
        verdict, threshold = ours.verdict(), WORLDS[id].get("passes", 0.7)
        assert verdict.passed == (total >= threshold), (id, k)
        assert verdict.score == (min(total / 50, 1.0) if id == "CartPole-v1" else float(total >= threshold))
        passed += bool(verdict.passed)
    assert 20 < passed < 80


@pytest.mark.parametrize("id", WORLDS)
def test_it_trains_one_step_unchanged(id: str, tmp_path: Path) -> None:
    world = {"name": "gymnasium", "id": id, **WORLDS[id]}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": world, "turns": 3}},
        rollout={"prompts": 2, "group": 4, "max_tokens": 2, "max_rows": 64},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
    )
    [row] = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert row["environment/lost"] == 0 and 1 <= row["environment/turns"] <= 3


def test_it_repeats_and_nothing_is_not_enough() -> None:
    for id in WORLDS:

        def make(id: str = id) -> Gymnasium:
            return Gymnasium(id, **WORLDS[id])

        tasks = make().tasks()
        rng = np.random.default_rng(5)
        plans: list[Any] = []
        for _ in range(6):
            said = [say(WORLDS[id].get("actions", "01")[i]) for i in rng.integers(0, 2, 4)]
            plans.append(said[: len(played(make(), tasks[len(plans)], said, len(plans))) - 2])
        repeats(make, tasks, plans)
        idle_fails(make, tasks, n=4)


def test_a_world_of_your_own_by_its_flag() -> None:
    world = Gymnasium(OWN, {"length": 4}, success="is_success", interface="tool")
    task = world.tasks()[0]
    shown = world.reset(task, 0)
    assert [t.name for t in shown.tools] == ["act"] and '"word": "' in shown.messages[0]["content"]
    word = world.world.unwrapped.word
    assert len(word) == 4
    refused = world.step(call("act", action="no word"))
    assert not refused.valid and "text of 1 to 8" in refused.observation.messages[0]["content"]
    assert not world.verdict().passed
    assert world.step(call("act", action=word[::-1])).terminated
    assert world.verdict().passed and world.verdict().parts["return | sum of rewards"] == -1.0
    with pytest.raises(RuntimeError, match="reset"):
        world.step(call("act", action=word))
    # Three tries that are none are an end too, and wrong; a closed one begins anew.
    world.close()
    *_, last, verdict = played(world, task, [call("act", action="a")] * 5)
    assert last.truncated and not last.terminated and verdict.passed is False
    told = Gymnasium(OWN, success="is_success", show=f"{OWN.rpartition(':')[0]}:told")
    assert told.reset(told.tasks()[1], 0).messages[0]["content"].endswith(f"word {told.world.unwrapped.word}")


def test_a_world_that_breaks_abstains() -> None:
    episode = Played(
        lambda: Gymnasium(OWN, {"breaks": True}, success="is_success"), Gymnasium(OWN, success="x").tasks()[0], 0
    )
    episode.reset()
    with pytest.raises(EnvironmentFailure, match="OSError: the wire is cut"):
        episode.step(say("abc"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"id": "Frozenlake-v1"}, "Did you mean: `FrozenLake`"),
        ({"id": "nowhere_at_all:X-v0"}, "nowhere_at_all"),
        ({"id": "Pendulum-v1"}, "give passes = 1.0, or success"),
        ({"id": "CartPole-v1", "show": "render"}, "cannot draw itself in characters"),
        ({"id": "CartPole-v1", "show": "text"}, "it is observation, render or"),
        ({"id": "CartPole-v1", "actions": ["left"]}, "other actions than the 1"),
        ({"id": "CartPole-v1", "returns": [5, 5]}, "a lower one and a higher one"),
        ({"id": "CartPole-v1", "options": {"size": 3}}, "size"),
        ({"id": "CartPole-v1", "seed": -1}, "seed -1 is negative"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        build("environment", {"name": "gymnasium", **options})


def test_another_source_s_task_is_refused() -> None:
    with pytest.raises(UsageError, match="no meta"):
        Gymnasium("CartPole-v1").reset(Task("1", "play"), 0)
