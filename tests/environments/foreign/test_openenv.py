"""OpenEnv's environments are played as they are; ours, behind a server, are the same to whoever plays them there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acted import played
from running import metrics, run
from serving import served

from assay.environments.base import EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.foreign.openenv.environment import OpenEnv
from assay.environments.played import Played
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, ToolCall

pytestmark = pytest.mark.usefixtures("one_thread")
FILE = Path(__file__).with_name("openenv_worlds.py")


def at_random(shown: Any, tools: Any, rng: np.random.Generator) -> Any:
    if tools and rng.random() < 0.8:
        text = {"search": call("search", query="town"), "open": call("open", document="nowhere")}
        made = text.get(tools[-1].name) or call("act", action=str(rng.choice(shown.admissible or ["x"])))
        return replace(made, calls=find_calls(made.text, tools))
    if shown.admissible:
        return say(str(rng.choice(shown.admissible)))
    return say(f"<answer>{rng.integers(1, 17)}</answer>" if rng.random() < 0.5 else f"it is {rng.integers(1, 17)}")


@pytest.mark.parametrize(
    "world",
    [
        "guess",
        {"name": "games", "names": ["tictactoe", "sudoku4"], "interface": "tool"},
        pytest.param("search", marks=pytest.mark.slow),
    ],
    ids=["text", "tool act", "tools"],
)
def test_ours_behind_a_server_is_ours(world: Any) -> None:
    """Every observation, turn reward, end and verdict of 34 random episodes each, over the wire and here."""
    passed = 0
    with served(world) as server:
        theirs = OpenEnv(server.url)
        for k in range(34):
            here, rng = build("environment", world), np.random.default_rng([2, k])
            source = here.tasks()
            shown = here.reset(source[k], k)
            task = replace(theirs.tasks()[k], meta={"reset": {"seed": k, "index": k}})
            assert theirs.reset(task, k) == shown
            tools = shown.tools
            for _ in range(40):
                action = at_random(shown, tools, rng)
                step = here.step(action)
                assert theirs.step(action) == replace(step, verdict=None)
                shown = step.observation
                if step.terminated or step.truncated:
                    break
            else:
                continue
            found, judged = theirs.verdict(), here.verdict()
            assert (found.score, found.passed, found.feedback) == (judged.score, judged.passed, judged.feedback)
            passed += bool(found.passed)
        theirs.close()
    assert passed or world == "search"


def test_it_trains_one_step_over_the_wire(tmp_path: Path) -> None:
    with served({"name": "guess", "most": 9}) as server:
        world = {"name": "openenv", "server": server.url}
        folder = run(
            tmp_path / "run",
            model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
            tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
            warmup={"steps": 0},
            method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": world, "turns": 4}},
            rollout={"prompts": 2, "group": 4, "max_tokens": 2, "max_rows": 64},
            train={"steps": 1, "epochs": 1, "mini_batches": 1},
        )
        [row] = [m for m in metrics(folder) if m["stage"] == "rl"]
        assert row["environment/lost"] == 0 and 1 <= row["environment/turns"] <= 4
        assert server.sessions == 0


def test_an_action_of_one_text() -> None:
    world = OpenEnv(f"{FILE}:Echo")
    task = world.tasks()[3]
    shown = world.reset(task, 0)
    word = str(task.meta["reset"]["seed"] % 1000)
    assert shown.messages == ({"role": "user", "content": f"say {word}"},) and not shown.tools
    assert world.step(say("no")).observation.messages[0]["content"] == "no"
    assert world.verdict().passed is False
    last = world.step(say(word))
    assert last.terminated and last.reward == 1.0
    assert world.verdict().passed and world.verdict().score == 1.0
    with pytest.raises(RuntimeError, match="reset"):
        world.step(say(word))
    *_, wrong = played(world, task, [say("a"), say("b")])
    assert wrong.passed is False and wrong.score == 0
    # What the environment raises is its own failure.
    world.reset(task, 0)
    with pytest.raises(OSError, match="disk"):
        world.step(say("break"))


def test_an_action_of_several_fields_is_a_tool() -> None:
    world = OpenEnv(f"{FILE}:Walk", reset={"far": 2}, reward="sum", split="train")
    assert world.tasks().size == 5 and world.tasks()[4].meta["reset"] == {"far": 2, "split": "train", "index": 4}
    shown = world.reset(world.tasks()[0], 0)
    assert shown.messages[0]["content"] == '{"at": [0, 0], "goal": [2, 1]}'
    [act] = shown.tools
    assert act.name == "act" and set(act.parameters["properties"]) == {"x", "y"}
    text = call("act", x=1, y=5).text
    assert find_calls(text, [act])[0].problem == "bad_arguments"
    for wrong in (say("go"), call("act", x=1), call("act", x=1, y=3), call("walk", x=1, y=1)):
        step = world.step(wrong)
        assert not step.valid and step.error and world.talk.world.at == [0, 0]  # type: ignore[union-attr]
    assert world.step(call("act", x=1, y=1)).reward == pytest.approx(2 / 3)
    assert not world.verdict().passed
    assert world.step(call("act", x=1, y=0)).terminated
    assert world.verdict().score == pytest.approx(1.0) and world.verdict().parts["return | sum of rewards"] > 0.99


def test_tools_as_mcp_has_them() -> None:
    world = OpenEnv(f"{FILE}:Sums")
    shown = world.reset(world.tasks()[0], 0)
    assert [t.name for t in shown.tools] == ["add"] and shown.messages[0]["content"] == "reach 10"
    assert not world.step(say("ten")).valid
    bad = world.step(replace(call("add", n=-1)))
    assert not bad.valid and bad.observation.messages[0]["content"] == "error: not below 0"
    both = (*call("add", n=4).calls, ToolCall("add", None, 0, 0, "not_json", "no JSON", "b"), *call("add", n=6).calls)
    step = world.step(replace(call("add", n=4), calls=(*both, *call("add", n=1).calls)))
    said = [m["content"] for m in step.observation.messages]
    assert said == ["now 4", "error: no JSON", "now 10", "error: not made; the episode is over"]
    assert step.terminated and not step.valid and world.verdict().passed


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: OpenEnv("http://127.0.0.1:9").reset(OpenEnv("http://127.0.0.1:9").tasks()[0], 0), "127.0.0.1:9"),
    ],
)
def test_a_server_that_is_away_is_no_wrong_answer(make: Callable[[], Any], reason: str) -> None:
    with pytest.raises(EnvironmentFailure, match=reason):
        make()


def test_a_server_that_dies_abstains_and_one_that_is_back_goes_on() -> None:
    with served("guess") as server:
        episode = Played(lambda: OpenEnv(server.url), OpenEnv(server.url).tasks()[0], 0, attempts=2)
        episode.reset()
        episode.step(say("5"))
        # The connection breaks; the server is there: the episode is played again to the same place.
        episode.world.talk.socket.socket.shutdown(2)  # type: ignore[union-attr]
        assert episode.step(say("6")).observation.messages
        left = Played(lambda: OpenEnv(server.url), OpenEnv(server.url).tasks()[0], 0, attempts=2)
        left.reset()
    with pytest.raises(EnvironmentFailure, match="environment failed"):
        left.step(say("5"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"server": "nowhere.at:all"}, "give a URL, package.module:Class or file.py:Class"),
        ({"server": "guess"}, "give a URL"),
        ({"server": f"{FILE}:Nothing"}, "has no environment 'Nothing'"),
        ({"server": f"{FILE}:Echo", "split": "train"}, "does not say how many tasks"),
        ({"server": f"{FILE}:Walk", "split": "test"}, "does not say how many tasks"),
        ({"server": "http://127.0.0.1:9", "split": "train"}, "does not say how many tasks"),
        ({"server": f"{FILE}:Echo", "seed": -1}, "negative"),
    ],
)
def test_what_cannot_be_played_is_said_at_once(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        build("environment", {"name": "openenv", **options})


def test_a_field_it_has_not_and_another_source_s_task() -> None:
    world = OpenEnv(f"{FILE}:Echo", field="words")
    with pytest.raises(UsageError, match="no field 'words'"):
        world.reset(world.tasks()[0], 0)
    with pytest.raises(UsageError, match="no meta"):
        world.reset(Task("1", "play"), 0)
