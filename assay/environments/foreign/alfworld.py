"""ALFWorld's games in words: errands in a house, played from the files that it publishes."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from assay.environments.base import EnvironmentFailure
from assay.environments.foreign.textgame import Files, TextGame
from assay.environments.lines import Interface, how, plain
from assay.errors import UsageError
from assay.registry import part
from assay.types import Verdict

REFUSED = "Nothing happens."
"""What the game says to a command that cannot be carried out."""
LEFT_OUT = ("movable", "Sliced")
"""Stand in the folders of games that ALFWorld's own loader leaves out."""
_IDLE: list[Any] = []
"""Games that no episode plays. Each has a copy of Fast Downward's library, 34 MB, that a process cannot let go of."""


@part("environment", "alfworld")
class AlfWorld(TextGame):
    """A house with something to be done in it, by commands such as ``go to fridge 1`` and ``take mug 2 from desk 1``.

    A turn's command is its last line, or its ``<action>``; one that cannot be carried out changes nothing. The verdict
    is the game's: it passes once its goal holds, for which the turn's reward is 1. Things are named as ALFWorld names
    them. The state is the set of facts that hold. The plan is the game's own walkthrough while it is followed, else
    Fast Downward's, which takes long in a large house.

    Args:
        games: a pattern of files, such as ``~/.cache/alfworld/json_2.1.1/train/**/game.tw-pddl``; those that are not
            said to be solvable, or are of things that ALFWorld leaves out, are left out. What is said in a game is
            evaluated by TextWorld as Python has it: play those of people you trust.
        commands: turns of an episode, at most.
        listed: whether the commands that can be carried out are told with each observation.
        interface: ``text``, or ``tool``: the tool ``act`` takes the command.

    Raises:
        UsageError: TextWorld or Fast Downward is not installed, an option is out of range, or there is no such game.

    Source: ALFWorld (arXiv 2010.03768), whose other half, pictures of the same houses, is not played here.
    """

    name = "alfworld"
    needs = ("fast_downward", "textworld")
    suffix = ".tw-pddl"

    def __init__(self, games: str, commands: int = 50, listed: bool = False, interface: Interface = "text"):
        super().__init__(commands, listed, interface)
        files = self._files(games, _played, " that can be solved")
        prompt = f"You are in a house. Each turn give one command, such as look or go to desk 1, by {how(interface)}."
        self._tasks = Files(self.name, files, prompt, least=2, every="game")

    def tasks(self) -> Files:
        return self._tasks

    def begun(self, game: str) -> str:
        self.game = _IDLE.pop() if _IDLE else _game()
        arguments = sys.argv
        try:
            self.game.load(game)
            self._things = self.game._entity_infos
            for id, name in names(self._things).items():
                self._things[id].name = name
            self.now = self.game.reset()
            self._way = self._walkthrough(self.game._game_data.get("walkthrough"))
        except (Exception, SystemExit) as error:
            raise EnvironmentFailure(f"{game} cannot be played: {type(error).__name__}: {error}") from error
        finally:
            # The translator reads arguments of its own there.
            sys.argv = arguments
        return self.now.feedback.strip()

    def ended(self, game: Any) -> None:
        _IDLE.append(game)

    def tried(self, command: str) -> tuple[str, str]:
        command = plain(command)
        if command not in self.now.admissible_commands:
            return REFUSED, REFUSED
        before = set(self.now.facts)
        self.now, _, _ = self.game.step(command)
        if command in self._way[:1]:
            self._way = self._way[1:]
        elif set(self.now.facts) != before:
            self._way = []
        return self.now.feedback.strip(), ""

    def plan(self) -> Sequence[str]:
        """Return the rest of the game's walkthrough, while it is followed, or what Fast Downward finds."""
        return self._way or self.game._pddl_state.replan(self._things)

    def _walkthrough(self, commands: Any) -> list[str]:
        """Return what a file gives as its walkthrough, if all of it is said as commands of this game are."""
        told = [re.split(r"\[.*?\]|\{.*?\}", template) for template in self.now.command_templates]
        said = re.compile("|".join(".+".join(map(re.escape, parts)) for parts in told))
        return list(commands) if commands and all(said.fullmatch(command) for command in commands) else []

    def verdict(self) -> Verdict:
        return Verdict.right("its goal holds") if self.now.won else Verdict.wrong("its goal does not hold")


def _game() -> Any:
    """Return what can play a game."""
    import fast_downward
    import textworld
    from textworld.envs import PddlEnv

    if not hasattr(fast_downward.pddl2sas, "cache_info"):
        # A game is translated four times for each episode: seconds, for a house of thirty places.
        fast_downward.pddl2sas = functools.lru_cache(32)(fast_downward.pddl2sas)
    return PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True, facts=True))


def names(ids: Iterable[str]) -> dict[str, str]:
    """Return what each thing is called: its kind and, of n of a kind, n for the first by id, down to 1 for the last.

    An id is the kind and where it was found, ``mug_bar__plus_01_dot_20...``; what has no place keeps its id. Basins
    of sinks and baths are a kind of their own.
    """
    ids = sorted(ids)
    kinds = {id: id.split("_bar_", 1)[0] + ("basin" if "basin" in id else "") for id in ids if "_bar_" in id}
    left = Counter(kinds.values())
    out = {}
    for id in ids:
        out[id] = id
        if id in kinds:
            out[id] = f"{kinds[id]} {left[kinds[id]]}"
            left[kinds[id]] -= 1
    return out


def _played(file: str) -> bool:
    """Whether ALFWorld plays a game."""
    folders = "/".join(Path(file).parts[-3:-1])
    return not any(word in folders for word in LEFT_OUT) and _solvable(file, os.stat(file).st_mtime_ns)


@functools.cache
def _solvable(file: str, changed: int) -> bool:
    """Whether a game is said to be solvable; thousands of files are asked for every episode's environment."""
    try:
        game = json.loads(Path(file).read_text(encoding="utf-8"))
        for key in ("pddl_domain", "grammar", "pddl_problem"):
            if not isinstance(game, dict) or key not in game:
                raise ValueError(f"it has no {key}")
        return bool(game.get("solvable"))
    except (OSError, ValueError) as error:
        raise UsageError(f"environment 'alfworld': {file} is no game: {error}") from None
