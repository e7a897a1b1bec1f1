"""What text games share: turns are counted, the commands there are told, and the library has one caller at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.environments.base import Action
from assay.environments.foreign.textgame import Files, TextGame
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.types import Task

TASK = Task("door", "Get out.", meta={"game": 2})


class Door(TextGame):
    """A door that opens at the n-th push, and a pit; each push is a point of n."""

    name = "door"
    suffix = ".door"
    needs = ()

    def begun(self, game: int) -> str:
        self.game = SimpleNamespace(pushes=0, ended=0)
        self._tell(game)
        return "A door."

    def tried(self, command: str) -> tuple[str, str]:
        if command not in self.now.admissible_commands:
            return "You can't.", "You can't."
        self.game.pushes += command == "push"
        self._tell(self.now.max_score, lost=command == "jump")
        return "It moves." if command == "push" else "You fall.", ""

    def plan(self) -> Sequence[str]:
        return ["push"] * (self.now.max_score - self.game.pushes)

    def ended(self, game: Any) -> None:
        game.ended += 1

    def _tell(self, most: int, lost: bool = False) -> None:
        pushes = self.game.pushes
        facts = [f"pushed {n}" for n in range(pushes, 0, -1)]
        can = ["push", "jump"]
        self.now = SimpleNamespace(
            admissible_commands=can, won=pushes == most, lost=lost, score=pushes, max_score=most, facts=facts
        )


def shown(action: Action, **options: Any) -> tuple[str, str]:
    """What an action in the first turn is answered by, and what was wrong with it."""
    world = Door(**{"commands": 9, "listed": True, "interface": "tool" if action.calls else "text", **options})
    world.reset(TASK, 0)
    step = world.step(action)
    assert step.valid is not bool(step.error)
    return step.observation.messages[0]["content"], step.error


def test_the_commands_are_told_with_each_answer() -> None:
    """Also with one that says what was wrong, by text or by the tool."""
    world = Door(9, True, "text")
    assert world.reset(TASK, 0).messages[0]["content"] == "Get out.\n\nA door.\nCommands: push, jump"
    assert shown(say("push")) == ("It moves.\nCommands: push, jump", "")
    assert shown(say("fly")) == ("You can't.\nCommands: push, jump", "You can't.")
    assert shown(call("act", action="fly")) == ("error: You can't.\nCommands: push, jump", "You can't.")
    assert shown(say("push"), interface="tool") == ("call the tool act\nCommands: push, jump", "call the tool act")
    assert shown(say("fly"), listed=False) == ("You can't.", "You can't.")


def test_turns_are_counted_and_end() -> None:
    world = Door(3, False, "text")
    world.reset(TASK, 0)
    steps = [world.step(say(word)) for word in ("fly", "push", "fly")]
    assert [(s.reward, s.valid, s.terminated, s.truncated) for s in steps] == [
        (0, False, False, False),
        (0.5, True, False, False),
        (0, False, False, True),
    ]
    # A last turn that wins is no truncated one, and nothing can be done after it.
    for words, reward in ((("fly", "push", "push"), 0.5), (("jump",), 0)):
        world.reset(TASK, 0)
        last = [world.step(say(word)) for word in words][-1]
        assert (last.reward, last.terminated, last.truncated, last.observation.admissible) == (
            reward,
            True,
            False,
            None,
        )
        with pytest.raises(RuntimeError, match="call reset first"):
            world.step(say("push"))


def test_the_state_is_the_facts_and_games_are_let_go_of() -> None:
    world = Door(9, False, "tool")
    first = world.reset(TASK, 0)
    assert first.admissible == ("push", "jump") and [tool.name for tool in first.tools] == ["act"]
    assert world.gold() == [call("act", action="push")] * 2
    one = world.step(call("act", action="push"))
    assert one.observation.state != first.state and world.state_json() == {"won": False, "facts": ["pushed 1"]}
    game = world.game
    assert world.reset(TASK, 0).state == first.state and game.ended == 1 and world.game is not game
    world.close()
    world.close()
    assert game.ended == 1


def test_one_game_at_a_time_is_in_the_library() -> None:
    """Environments live in threads of a process (``workers``), and the library's parsers are one."""
    inside: list[int] = []

    class Watched(Door):
        def _noted(self, method: Any, *arguments: Any) -> Any:
            inside.append(1)
            time.sleep(0.002)
            assert len(inside) == 1
            found = method(*arguments)
            inside.pop()
            return found

        def begun(self, game: int) -> str:
            return self._noted(super().begun, game)

        def tried(self, command: str) -> tuple[str, str]:
            return self._noted(super().tried, command)

        def plan(self) -> Sequence[str]:
            return self._noted(super().plan)

    def play(index: int) -> float:
        world = Watched(9, False, "text")
        world.reset(TASK, index)
        return sum(world.step(action).reward for action in world.gold())

    with ThreadPoolExecutor(4) as beside:
        assert list(beside.map(play, range(8))) == [1.0] * 8


def test_files_of_games_are_found_and_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(games: str, **options: Any) -> list[str]:
        tasks = Files("door", Door(1, False, "text")._files(games), "Go.", **options)
        assert all(tasks[i].meta["game"] == file for i, file in enumerate(tasks.files))
        return [tasks[i].id for i in range(tasks.size)]

    for name in ("train/a/game.door", "train/a-b/game.door", "train/notes.txt", "test/a/game.door", "test/x.door"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert found(f"{tmp_path}/test/x.door") == ["door/x"]
    assert found("~/train/**") == ["door/a-b/game", "door/a/game"]
    assert found("~/train/**", every="game") == ["door/a-b", "door/a"]
    assert found("~/train/a/*.door", every="game") == ["door/game"]
    assert found("~/train/a/*.door", least=2, every="game") == ["door/train/a"]
    everything = found("~/**/*.door", every="game")
    assert everything == ["door/test/a", "door/test/x", "door/train/a-b", "door/train/a"]
    assert found("~/**/*.door", least=2, every="game")[1] == f"door/{tmp_path.name}/test/x"
    monkeypatch.chdir(tmp_path / "test")
    assert found("**/*.door") == ["door/a/game", "door/x"] and found("*.door") == ["door/x"]
    with pytest.raises(UsageError, match=r"no game is at '~/train'; give .* such as '~/train/\*\*/\*.door'"):
        found("~/train")
    with pytest.raises(UsageError, match=r"no game is at '\*.txt'; give .* such as 'FOLDER/\*\*/\*.door'"):
        found("*.txt")


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="'door': commands 0 must be at least 1"):
        Door(0, False, "text")
    with pytest.raises(UsageError, match="'door': task other has no game; take its own tasks"):
        Door(1, False, "text").reset(Task("other", "?"), 0)
    monkeypatch.setattr(Door, "needs", ("json", "no_such_module"))
    with pytest.raises(UsageError, match=r"'door' needs the package no_such_module: pip install 'assay\[door\]'"):
        Door(1, False, "text")
