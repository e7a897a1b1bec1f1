"""Environments of verifiers run unchanged: their loop, tools and users, and the rewards they give by themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run

from assay.environments.base import EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.foreign.chat import Asked, Line, desk
from assay.environments.foreign.verifiers.environment import Verifiers
from assay.environments.played import Played
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-verifiers/bin/python"
OPTIONS: dict[str, Any] = {"python": str(PYTHON), "path": [str(HERE / "worlds")]}

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not PYTHON.exists(), reason="verifiers is not installed: make foreign"),
]


def turns(name: str, rng: np.random.Generator) -> Any:
    """Say something that may be right, at random."""
    number = int(rng.integers(1, 8))
    if name == "vf_till" and rng.random() < 0.7:
        return call("pay", amount=number) if rng.random() < 0.8 else say("<tool_call>\n{\n</tool_call>")
    return say(str(number) if rng.random() < 0.9 else "I do not know.")


def recorded(name: str, episodes: int) -> list[tuple[int, list[Any], float, bool]]:
    """Play at random; return each episode's task, the assistant's messages, the score and whether it passed."""
    out = []
    for k in range(episodes):
        world, rng = Verifiers(name, **OPTIONS), np.random.default_rng([3, k])
        index = k % 3
        shown = world.reset(world.tasks()[index], k)
        tools, over = shown.tools, False
        while not over:
            action = turns(name, rng)
            over = world.step(replace(action, calls=find_calls(action.text, tools) if tools else ())).terminated
        verdict = world.verdict()
        assert verdict.passed is not None
        messages: list[Any] = [m for m in world.said if m["role"] == "assistant"]
        reward = sum(v for v in verdict.parts.values() if v is not None)
        out.append((index, messages, reward, verdict.passed))
        world.close()
    return out


def theirs(name: str, played: list[tuple[int, list[Any], float, bool]]) -> list[float]:
    """What verifiers gives for the same messages."""
    role = "player" if name == "vf_guess" else "agent"
    env = {"taskset": {"id": name}, role: {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}}
    given = {"path": OPTIONS["path"], "env": env, "played": [[index, messages] for index, messages, *_ in played]}
    ran = subprocess.run(
        [str(PYTHON), str(HERE / "replayed.py")], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    found: list[float] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("episodes", [3, pytest.param(34, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["vf_sums", "vf_till", "vf_guess"])
def test_verdicts_are_theirs(name: str, episodes: int) -> None:
    played = recorded(name, episodes)
    for (_, messages, reward, passed), found in zip(played, theirs(name, played), strict=True):
        assert reward == pytest.approx(found) and passed == (found >= 1.0), messages


def trained(world: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Train one step in a world; return the step's metrics."""
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1024}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 1, "eval_share": 0.34},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": world, "turns": 2}},
        rollout={"prompts": 1, "group": 3, "max_tokens": 2, "max_rows": 64},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [m for m in metrics(folder) if m["stage"] == "rl"]
    return row


@pytest.mark.parametrize("name", ["vf_sums", "vf_till", "vf_guess"])
def test_it_trains_one_step_unchanged(name: str, tmp_path: Path) -> None:
    row = trained({"name": "verifiers", "taskset": name, **OPTIONS}, tmp_path)
    assert row["environment/lost"] == 0 and 1 <= row["environment/turns"] <= 2


def test_it_trains_one_step_with_a_user_who_is_a_model(tmp_path: Path) -> None:
    """verifiers' own user simulator, who asks, asks once more, and is done."""
    said = ["What is 2+1, please?", "Are you sure?", "###DONE###"]
    with user_who(lambda body: said[min(2, sum(m["role"] == "assistant" for m in body["messages"]))]) as seat:
        env = {"id": "user-sim", "user": seat}
        row = trained({"name": "verifiers", "taskset": "vf_sums", "env": env, **OPTIONS}, tmp_path)
    assert row["environment/lost"] == 0 and row["environment/turns"] == 2


def test_turns_that_are_spent_and_loops_that_fail() -> None:
    world = Verifiers("vf_guess", **OPTIONS)
    shown = world.reset(world.tasks()[1], 0)
    assert shown.messages == ({"role": "user", "content": "1-8?"},)
    assert world.step(say("4")).observation.messages == ({"role": "user", "content": "higher"},)
    # Nothing more is said: the loop scores what there is.
    assert world.verdict().passed is False and world.ended is not None
    with pytest.raises(RuntimeError, match="reset"):
        world.step(say("5"))
    world.close()
    episode = Played(lambda: Verifiers("vf_guess", **OPTIONS), world.tasks()[0], 0, attempts=1)
    episode.reset()
    with pytest.raises(EnvironmentFailure, match="OSError: the wire is cut"):
        episode.step(say("13"))
    # Its process dies: an abstention, and the next episode has a new one.
    left = Played(lambda: Verifiers("vf_guess", **OPTIONS), world.tasks()[0], 0, attempts=1)
    left.reset()
    os.killpg(world.process.process.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFailure, match="its process ended with status -9"):
        left.step(say("5"))
    again = Verifiers("vf_guess", **OPTIONS)
    again.reset(again.tasks()[0], 0)
    assert again.step(say("2")).terminated and again.verdict().passed
    again.close()


@contextmanager
def user_who(answers: Callable[[Any], str]) -> Iterator[dict[str, Any]]:
    """The seat of a user whose turns, told from what the simulator asks, a script answers over the same protocol."""
    user = Line(desk())

    def answer() -> None:
        while isinstance(asked := user.events.get(), Asked):
            asked.answer({"role": "assistant", "content": answers(asked.body)})

    talking = threading.Thread(target=answer, daemon=True)
    talking.start()
    try:
        yield {"client": {"base_url": user.url, "api_key_var": "NO_KEY"}, "model": "user"}
    finally:
        user.events.put(None)
        talking.join(60)
        user.close()


def test_a_user_who_is_a_model() -> None:
    said = iter(["What is 2+1, please?", "###DONE###"])
    with user_who(lambda body: next(said)) as seat:
        world = Verifiers("vf_sums", env={"id": "user-sim", "user": seat}, **OPTIONS)
        shown = world.reset(world.tasks()[2], 0)
        assert [m["content"] for m in shown.messages] == ["Add.", "What is 2+1, please?"]
        assert world.step(say("3")).terminated and world.verdict().passed and world.verdict().score == 1.0
        world.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"taskset": "vf_nothing"}, "vf_nothing' not found"),
        ({"taskset": {"id": "vf_sums", "breaks": True}}, "OSError: the data are away"),
        ({"taskset": {"id": "vf_sums", "least": 3}}, "least"),
        ({"taskset": "vf_sums", "role": "user"}, "there is no role 'user'; there are agent"),
        ({"taskset": "vf_sums", "env": {"id": "user-sim"}}, "the role 'user' is no policy's"),
        ({"taskset": {"most": 3}}, 'needs its id = "..."'),
        ({"taskset": "vf_sums", "python": "/nowhere/python"}, "cannot run /nowhere/python"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        build("environment", {"name": "verifiers", **OPTIONS, **options})
