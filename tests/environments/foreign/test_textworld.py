"""TextWorld's games are won by their own walkthroughs, and by nothing that is no play."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acted import ends, gold_passes, idle_fails, played, repeats

from assay.environments.foreign.textworld import TextWorld
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.errors import UsageError

textworld = pytest.importorskip("textworld", reason="TextWorld is not installed: pip install 'assay[textworld]'")
pytestmark = pytest.mark.filterwarnings("error:Game")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both games of this file are compiled once."""
    return tmp_path_factory.mktemp("games")


def test_the_walkthrough_wins_and_words_do_not(folder: Path) -> None:
    def make() -> TextWorld:
        return TextWorld(folder=folder)

    tasks = make().tasks()
    plans = gold_passes(make, tasks, 2)
    assert len(list(folder.glob("*.z8"))) == 2
    repeats(make, tasks, plans)
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=1)
    # By the tool, and with the commands told.
    world = TextWorld(folder=folder, interface="tool", listed=True)
    *steps, verdict = played(world, world.tasks()[0], [call("act", action=a.text) for a in plans[0]])
    assert verdict.passed and "\nCommands: " in steps[0].messages[0]["content"]
    assert sum(step.reward for step in steps[1:]) == pytest.approx(1.0)
    assert world.state_json()["won"]


def test_it_is_the_game_it_would_be_without_us(folder: Path) -> None:
    ours = TextWorld(folder=folder, commands=30)
    infos = textworld.EnvInfos(admissible_commands=True, won=True, score=True)
    for index in range(6):
        rng, task = np.random.default_rng([4, index]), ours.tasks()[index % 2]
        shown: Any = ours.reset(task, index)
        [file] = folder.glob(f"*seed{task.meta['game']['seed']}.z8")
        theirs = textworld.start(str(file), infos)
        state, done = theirs.reset(), False
        for _ in range(30):
            assert list(shown.admissible) == state.admissible_commands
            command = str(rng.choice(state.admissible_commands))
            before = state.score
            state, _, done = theirs.step(command)
            step = ours.step(say(command))
            assert step.valid and step.reward == (state.score - before) / ours.now.max_score
            shown = step.observation
            if done:
                break
        assert (ours.verdict().passed, step.terminated) == (bool(state.won), done)
        theirs.close()
        ours.close()


def test_what_is_no_play_is_not_made(folder: Path) -> None:
    world = TextWorld(folder=folder, commands=20)
    world.reset(world.tasks()[0], 0)
    before = world.state_json()
    for word in ("", "restart", "save", "quit", "undo", "tw-print raw", "purloin teacup", "take\x01", "look. look"):
        step = world.step(say(word))
        assert not step.valid and step.error and world.state_json() == before, word
    for word in ("take " + "a" * 200, "take it; look", "é"):
        assert not world.step(say(word)).valid
    # What the game itself refuses is answered by it.
    refused = world.step(say("take moon"))
    assert not refused.valid and refused.error == refused.observation.messages[0]["content"]
    assert world.step(say("look")).valid
    while not (step := world.step(say("look"))).truncated:
        assert not step.terminated
    assert world.verdict().passed is False
    world.close()


def test_short_commands_are_what_they_stand_for(folder: Path) -> None:
    """And what the interpreter writes for people, its prompt and status line, is not shown."""
    world = TextWorld(folder=folder, interface="tool")
    opened = world.reset(world.tasks()[0], 0)
    assert "go south" in (opened.admissible or ())
    for word, same in (("i", True), ("l", True), ("S", False), ("north", True)):
        step = world.step(call("act", action=word))
        said = step.observation.messages[0]["content"]
        assert step.valid and not said.startswith("error") and (step.observation.state == opened.state) is same
        assert said and ">" not in said and "0/" not in said
    step = world.step(call("act", action="n"))
    assert not step.valid and step.observation.messages[0]["content"] == "error: You can't go that way."
    world.close()


def test_games_begin_beside_each_other(folder: Path) -> None:
    """In a process that hosts several, each in its thread, from the first on."""
    worlds = Worlds({"name": "textworld", "folder": str(folder)}, workers=1)
    task = worlds.here().tasks()[0]

    def play(index: int) -> bool:
        world = worlds()
        world.reset(task, index)
        return bool([world.step(action) for action in world.gold()] and world.verdict().passed)

    try:
        worlds.start()
        with ThreadPoolExecutor(4) as beside:
            assert all(beside.map(play, range(8)))
    finally:
        worlds.close()


def test_games_there_are_and_are_not(folder: Path, tmp_path: Path) -> None:
    TextWorld(folder=folder).reset(TextWorld().tasks()[0], 0)
    world = TextWorld(games=str(folder / "*.z8"))
    assert world.tasks().size == len(list(folder.glob("*.z8")))
    world.reset(world.tasks()[0], 0)
    assert played(world, world.tasks()[0], world.gold())[-1].passed
    (tmp_path / "lonely.z8").write_bytes(b"")
    with pytest.raises(UsageError, match="no game is at"):
        TextWorld(games=str(tmp_path / "*.z5"))
    with pytest.raises(UsageError, match=r"lonely\.z8 has no \.json"):
        TextWorld(games=str(tmp_path / "*.z8"))
    with pytest.raises(UsageError, match="rooms 0"):
        TextWorld(rooms=0)
