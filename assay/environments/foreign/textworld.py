"""TextWorld's games: generated and compiled here, or anybody's, played by their commands."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.environments.foreign.textgame import Files, TextGame
from assay.environments.lines import Interface, how
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.base import TaskSource
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict

SHORT = {word: f"go {way}" for way in ("north", "south", "east", "west") for word in (way, way[0])}
SHORT |= {"i": "inventory", "l": "look", "x": "examine"}
"""What can be said for a command's first word; all else an interpreter knows (restart, save, debugging) is no play."""
_PROMPT = re.compile(r">\s*(-= [^>]* =-\s*-?\d+/\d+)?\s*$")
"""What an interpreter ends with: a prompt, and a line of the place, the score and the moves."""
LONGEST = 120
"""Characters of a command."""


@dataclass(frozen=True, slots=True)
class Games:
    """Endless tasks that are a game each, to be made from ``options``."""

    options: dict[str, int]
    prompt: str
    seed: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        made = int(generator(self.seed, check_index(index, None)).integers(2**31))
        game = {**self.options, "seed": made}
        where = f"textworld/{self.seed}/{index}"
        return Task(where, self.prompt, {"game": game, "index": index}, "none", meta={"game": game})


@part("environment", "textworld")
class TextWorld(TextGame):
    """A house to walk through with a goal to reach, by commands such as ``take key from table``.

    Games are generated from the task's seed and compiled by TextWorld's own compiler, a few seconds for each, once:
    they are kept in ``folder``. A turn's command is its last line, or its ``<action>``. Beyond its verbs there are the
    directions, ``i``, ``l`` and ``x``; no other command is made, as an interpreter also restarts, saves and debugs. One
    that is not among those that lead on and changes nothing is invalid. The verdict is the game's: it passes once the
    game is won, its score is that of the game over the most there is, and a game that is lost scores 0. The reward of a
    turn is what it adds to the score. The state is the set of facts that hold.

    Args:
        rooms, objects: of a generated game.
        quest: commands that it takes at least; 10 are found in a second, 20 in 20 rooms not within nine minutes.
        games: compiled games (``.z8``, with TextWorld's ``.json`` beside each) in place of generated ones: a pattern.
        commands: turns of an episode, at most.
        listed: whether the commands that lead on are told with each observation.
        folder: where generated games are kept; by default within the user's cache.
        interface: ``text``, or ``tool``: the tool ``act`` takes the command.
        seed: of the games, >= 0.

    Raises:
        UsageError: TextWorld is not installed, an option is out of range, or there is no such game.
    """

    name = "textworld"
    suffix = ".z8"

    def __init__(
        self,
        rooms: int = 2,
        objects: int = 3,
        quest: int = 2,
        games: str | None = None,
        commands: int = 50,
        listed: bool = False,
        folder: Path | None = None,
        interface: Interface = "text",
        seed: int = 0,
    ):
        check_seed("environment 'textworld'", seed)
        if min(rooms, objects, quest) < 1 or max(rooms, objects, quest) > 20:
            raise UsageError(
                f"environment 'textworld': rooms {rooms}, objects {objects} and quest {quest} must be 1 to 20"
            )
        super().__init__(commands, listed, interface)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "assay" / "textworld"
        self.folder = folder or cache
        prompt = f"A text adventure. Each turn give one command, such as look or open door, by {how(interface)}."
        if games is None:
            self._tasks: TaskSource = Games({"rooms": rooms, "objects": objects, "quest": quest}, prompt, seed)
            return
        files = self._files(games)
        if lonely := [f for f in files if not Path(f).with_suffix(".json").is_file()]:
            raise UsageError(f"environment 'textworld': {lonely[0]} has no .json beside it, so nobody can judge it")
        self._tasks = Files(self.name, files, prompt)

    def tasks(self) -> TaskSource:
        return self._tasks

    def begun(self, game: str | Mapping[str, Any]) -> str:
        import textworld

        told = ("admissible_commands", "won", "lost", "policy_commands", "score", "max_score", "objective")
        # The interpreter does not know where a game keeps its score; TextWorld does.
        warnings.filterwarnings("ignore", "Game .* is not fully supported")
        infos = textworld.EnvInfos(**dict.fromkeys((*told, "description", "facts", "verbs"), True))
        self.game = textworld.start(str(_file(game, self.folder)), infos)
        self.now = self.game.reset()
        words = [self.now.objective or "", self.now.description or ""]
        return "\n\n".join(w.strip() for w in words if w.strip())

    def tried(self, command: str) -> tuple[str, str]:
        first, _, rest = command.partition(" ")
        command = f"{SHORT.get(first.casefold(), first)} {rest}".strip()
        if wrong := self._wrong(command):
            return wrong, wrong
        known, before = {c.casefold() for c in self.now.admissible_commands}, self.state_json()
        self.now, _, _ = self.game.step(command)
        said = " ".join(_PROMPT.sub("", self.now.feedback.split("*** The End ***")[0]).split())
        # What the game answers to a command that leads nowhere says so itself.
        led = " ".join(command.casefold().split()) in known or self.state_json() != before
        return said, "" if led else said

    def plan(self) -> Sequence[str]:
        """Return the commands that the game itself says win it from here."""
        return self.now.policy_commands or ()

    def verdict(self) -> Verdict:
        if self.now.won:
            return Verdict.right("the game is won")
        score = 0.0 if self.now.lost else min(max(self._score() / self._most(), 0.0), 1.0)
        return Verdict(score, False, {}, "the game is lost" if self.now.lost else "the game is not won")

    def state_json(self) -> Any:
        return {**super().state_json(), "lost": bool(self.now.lost), "score": self._score()}

    def _wrong(self, command: str) -> str:
        """Return why a command is not given to the game."""
        first = command.split()[0].casefold() if command.split() else ""
        if not first:
            return "no command was given"
        if first not in self.now.verbs:
            return f"there is no verb {first[:20]!r}; there are {', '.join(sorted(self.now.verbs))}"
        if len(command) > LONGEST or not (command.isascii() and command.isprintable()):
            return f"a command is a line of at most {LONGEST} plain characters"
        return "one command a turn" if any(c in command for c in ".;") else ""


def _file(game: str | Mapping[str, Any], folder: Path) -> Path:
    """Return the compiled game, compiled now if it is not there; other processes may do the same at the same time."""
    if isinstance(game, str):
        return Path(game)
    import textworld

    name = "-".join(f"{key}{game[key]}" for key in ("rooms", "objects", "quest", "seed"))
    made = folder / f"{textworld.__version__}-{name}.z8"
    if made.is_file():
        return made
    options = textworld.GameOptions()
    options.nb_rooms, options.nb_objects, options.quest_length = game["rooms"], game["objects"], game["quest"]
    options.seeds = int(game["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        options.path = str(Path(beside) / made.name)
        textworld.make(options)
        # The story last: who finds it finds what judges it.
        for suffix in (".json", ".z8"):
            shutil.move(Path(beside) / made.with_suffix(suffix).name, made.with_suffix(suffix))

    return made
