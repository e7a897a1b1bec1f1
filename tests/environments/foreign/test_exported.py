"""Environments of ours, as other libraries have them, are what they are here."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from assay.environments.base import EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.exported.gymnasium import as_gymnasium
from assay.environments.exported.trl import Exported, as_trl, rows, verdict
from assay.environments.guess import Guess
from assay.environments.tools import ToolEnvironment, call, say, tool
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.listed import Listed
from assay.types import Task, Verdict


@pytest.mark.parametrize("environment", ["guess", {"name": "games", "names": ["sudoku4"]}, "search"])
def test_gymnasium_s_own_checker(environment: Any) -> None:
    world = as_gymnasium(environment)
    check_env(world, skip_render_check=True)
    world.close()


def test_a_gymnasium_episode_is_ours() -> None:
    for index in range(10):
        theirs, ours, rng = as_gymnasium("guess", turns=4), Guess(), np.random.default_rng(index)
        seen, info = theirs.reset(seed=index, options={"index": index})
        shown = ours.reset(ours.tasks()[index], 0)
        assert seen == shown.messages[0]["content"] and info["index"] == index and info["state"] == "1-16"
        total, over = 0.0, False
        for turn in range(4):
            words = f"it is {rng.integers(0, 18)}"
            seen, reward, terminated, truncated, info = theirs.step(words)
            step = ours.step(say(words))
            over = step.terminated or turn == 3
            assert (seen, terminated, info["valid"]) == (
                step.observation.messages[0]["content"],
                step.terminated,
                step.valid,
            )
            assert truncated == (not terminated and over)
            total += reward
            if over:
                break
        judged = ours.verdict()
        assert total == judged.score and info["verdict"]["passed"] == judged.passed
        with pytest.raises(RuntimeError, match="reset"):
            theirs.step("1")
    assert isinstance(theirs, gymnasium.Env)
    # The seed says which task, and the same seed the same.
    assert (
        theirs.reset(seed=5)[1]["index"]
        == as_gymnasium("guess").reset(seed=5)[1]["index"]
        != theirs.reset()[1]["index"]
    )


class Torn(ToolEnvironment):
    """Fails as it is told."""

    def tasks(self) -> Any:
        return Listed(
            [Task(str(i), "Tear it.", None, "none", meta={"fault": f}) for i, f in enumerate(("step", "verdict", ""))]
        )

    @tool
    def tear(self, hard: bool, often: int = 1, name: str | None = None) -> str:
        "Tear it apart."
        if self.task.meta["fault"] == "step":
            raise OSError("the disk is full")
        return f"torn {hard} {often} {name}"

    def verdict(self) -> Verdict:
        return Verdict.abstain("who can say") if self.task.meta["fault"] == "verdict" else Verdict.right()


@pytest.fixture
def torn(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("assay.environments.hosted.worlds.find", lambda *_: Torn)
    return "torn"


def test_a_world_that_fails_is_no_reward_of_zero(torn: Any) -> None:
    world = as_gymnasium(torn)
    world.reset(options={"index": 0})
    with pytest.raises(EnvironmentFailure, match="the disk is full"):
        world.step(call("tear", hard=True).text)
    world.reset(options={"index": 1})
    with pytest.raises(EnvironmentFailure, match="who can say"):
        world.step("done")
    kind = as_trl(torn)
    worlds = [kind() for _ in range(3)]
    for i, one in enumerate(worlds):
        assert one.reset(index=i) == "Tear it."
    assert worlds[0].tear(hard=True) == "error: the environment failed: OSError: the disk is full"  # type: ignore[attr-defined]
    assert worlds[2].tear(hard=False, often=2) == "torn False 2 None"  # type: ignore[attr-defined]
    assert worlds[2].tear(hard=True, name="A") == "torn True 1 A"  # type: ignore[attr-defined]
    said = [[{"role": "assistant", "content": "done"}]] * 3
    assert verdict(said, worlds) == [None, None, 1.0]
    with pytest.raises(UsageError, match="turns 0"):
        as_gymnasium("guess", turns=0)


def test_tools_become_methods(torn: Any) -> None:
    from transformers.utils import get_json_schema

    kind = as_trl(torn)
    assert issubclass(kind, Exported)
    public = [n for n, _ in inspect.getmembers(kind, inspect.isfunction) if not n.startswith("_")]
    assert public == ["reset", "tear"]
    told = get_json_schema(kind().tear)["function"]  # type: ignore[attr-defined]
    assert told["name"] == "tear" and told["description"] == "Tear it apart."
    properties = told["parameters"]["properties"]
    assert properties["hard"]["type"] == "boolean" and properties["often"]["type"] == "integer"
    assert told["parameters"]["required"] == ["hard"]


def test_a_trl_episode_is_ours() -> None:
    kind = as_trl("search")
    assert rows("search", 3, start=4)[2] == {"prompt": [{"role": "user", "content": ""}], "index": 6}
    for index in range(4):
        ours, theirs = build("environment", "search"), kind()
        task = ours.tasks()[index]
        shown = ours.reset(task, index)
        assert theirs.reset(**rows("search", 9)[index]) == shown.messages[0]["content"]
        *calls, answer = ours.gold()
        for action in calls:
            made = action.calls[0]
            step = ours.step(replace(action, calls=find_calls(action.text, shown.tools)))
            assert getattr(theirs, made.name)(**made.arguments) == step.observation.messages[0]["content"]
        talk = [{"role": "tool", "content": "x"}, {"role": "assistant", "content": answer.text}]
        assert verdict([talk], [theirs]) == [1.0]
        assert theirs.search(query="x") == "error: the episode is over"  # type: ignore[attr-defined]
    # Words alone, by a tool.
    guess = as_trl("guess")()
    guess.reset(index=0)
    number = Guess().tasks()[0].reference["number"]
    assert guess.act(action=str(number)) == "right"  # type: ignore[attr-defined]
    assert verdict([[{"role": "assistant", "content": "yes"}]], [guess]) == [1.0]
    idle = as_trl("guess")()
    idle.reset(index=0)
    assert verdict([[{"role": "assistant", "content": str(number)}]], [idle]) == [0.0]
    assert json.dumps(rows("guess", 2))
