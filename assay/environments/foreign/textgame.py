"""What the games of TextWorld's library share: a command a turn, facts that hold, the game's own word on its end."""

from __future__ import annotations

import glob
import hashlib
import importlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.environments.base import Action, Observation, Step
from assay.environments.lines import ACT, Interface, answered, taken
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.tasks.seeded import check_index
from assay.types import Message, Task, Tool

_ALONE = threading.Lock()
"""TextWorld's parsers, and Fast Downward's translator, are one for a process: whoever calls them is alone."""


@dataclass(frozen=True, slots=True)
class Files:
    """A task for each file of a game, in ``meta["game"]``.

    It is called by the file's path below the folder that all of them are in, of ``least`` folders or more. What all
    files of a kind of games are called (``every``) is left out.

    Attributes:
        files: sorted.
    """

    part: str
    files: tuple[str, ...]
    prompt: str
    least: int = 0
    every: str = ""

    @property
    def size(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Task:
        file = self.files[check_index(index, self.size)]
        common = Path(os.path.commonpath([os.path.dirname(f) for f in (self.files[0], self.files[-1])])).parts
        *folders, name = Path(file).with_suffix("").parts
        folders = folders[min(len(common), max(len(folders) - self.least, 0)) :]
        called = "/".join(folders if folders and name == self.every else [*folders, name])
        return Task(f"{self.part}/{called}", self.prompt, {"game": file}, "none", meta={"game": file})


class TextGame:
    """What is left to write is the tasks, a game's beginning, what it makes of a command, its plan, and its verdict.

    A turn's reward is what it adds to the game's score, over the most there is. The state is the set of facts that
    hold. An episode is over once its game is won or lost. Of all games in a process one at a time is in ``begun``,
    ``tried`` or ``plan``.

    Args:
        commands: turns of an episode, at most; the last one truncates it.
        listed: whether the commands that can be carried out are told with each observation.
        interface: ``text``, or ``tool``: the tool ``act`` takes the command.

    Raises:
        UsageError: ``commands`` is below 1, or a package is not installed.
    """

    name: ClassVar[str]
    """Of the part, and of the extra that installs what it ``needs``."""
    suffix: ClassVar[str]
    """Of files of such games."""
    needs: ClassVar[tuple[str, ...]] = ("textworld",)

    def __init__(self, commands: int, listed: bool, interface: Interface):
        if commands < 1:
            raise UsageError(f"environment {self.name!r}: commands {commands} must be at least 1")
        for module in self.needs:
            try:
                importlib.import_module(module)
            except ImportError:
                raise UsageError(
                    f"environment {self.name!r} needs the package {module}: pip install 'assay[{self.name}]'"
                ) from None
        self.commands, self.listed, self.interface = commands, listed, interface
        self.game: Any = None
        self.now: Any = None
        self._under_way = False

    # What a subclass has

    def begun(self, game: Any) -> str:
        """Begin a task's game: set ``game``, and ``now`` to what the library tells of it; return what is said first."""
        raise NotImplementedError

    def tried(self, command: str) -> tuple[str, str]:
        """Give the game a command, if it may have it; return what it answers, and what was wrong."""
        raise NotImplementedError

    def plan(self) -> Sequence[str]:
        """Return commands that reach the goal from here."""
        raise NotImplementedError

    def ended(self, game: Any) -> None:
        """Let go of a game; here it is closed."""
        game.close()

    # What follows from it

    def _files(self, games: str, played: Callable[[str], bool] = lambda file: True, which: str = "") -> tuple[str, ...]:
        """Return the files of games that a pattern names, those that are ``played``, in order.

        Raises:
            UsageError: there are none.
        """
        found = sorted(glob.glob(os.path.expanduser(games), recursive=True))
        files = tuple(file for file in found if file.endswith(self.suffix) and os.path.isfile(file) and played(file))
        if not files:
            below = os.path.join(
                games if os.path.isdir(os.path.expanduser(games)) else "FOLDER", "**", f"*{self.suffix}"
            )
            raise UsageError(
                f"environment {self.name!r}: no game{which} is at {games!r}; give a pattern of files, such as {below!r}"
            )
        return files

    def reset(self, task: Task, seed: int) -> Observation:
        if "game" not in task.meta:
            raise UsageError(f"environment {self.name!r}: task {task.id} has no game; take its own tasks")
        self.close()
        with _ALONE:
            said = self.begun(task.meta["game"])
        self.left, self._under_way = self.commands, True
        opened = self._told(f"{task.question}\n\n{said}".strip())
        return self._seen((Message(role="user", content=opened),), (ACT,) if self.interface == "tool" else ())

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        self.left -= 1
        before = self._score()
        line, error = taken(action, self.interface)
        reply = error
        if not error:
            with _ALONE:
                reply, error = self.tried(line)
        over = self._over()
        self._under_way = not over and self.left > 0
        messages, error = answered(action, self._told(reply), error)
        gained = (self._score() - before) / self._most()
        return Step(self._seen(messages), gained, over, not over and not self.left, valid=not error, error=error)

    def close(self) -> None:
        game, self.game, self._under_way = self.game, None, False
        if game is not None:
            self.ended(game)

    def gold(self) -> Sequence[Action]:
        """Return commands that reach the goal from here."""
        write = say if self.interface == "text" else lambda line: call(ACT.name, action=line)
        with _ALONE:
            return [write(command) for command in self.plan()]

    def state_json(self) -> Any:
        return {"won": bool(self.now.won), "facts": sorted(str(fact) for fact in self.now.facts or ())}

    def _over(self) -> bool:
        return bool(self.now.won or self.now.lost)

    def _score(self) -> int:
        return int(self.now.score or 0)

    def _most(self) -> int:
        return max(1, int(self.now.max_score or 1))

    def _told(self, said: str) -> str:
        return f"{said}\nCommands: {', '.join(self.now.admissible_commands)}" if self.listed else said

    def _seen(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Observation:
        key = hashlib.blake2b(json.dumps(self.state_json()).encode(), digest_size=16).hexdigest()
        return Observation(messages, tools, key, None if self._over() else tuple(self.now.admissible_commands))
