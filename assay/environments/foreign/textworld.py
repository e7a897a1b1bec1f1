"""TextWorld's games: generated and compiled here, or anybody's, played by their commands."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.environments.base import Action, Observation, Step
from assay.environments.lines import ACT, Interface, answered, how, taken
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task, Tool, Verdict

MOVES = ("north", "south", "east", "west", "n", "s", "e", "w", "i", "l", "x")
"""What can be said beside a game's own verbs; all else an interpreter knows (restart, save, debugging) is no play."""
LONGEST = 120
"""Characters of a command."""
_MAKING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Games:
    """Tasks that are a game each: endless ones to be made from ``options``, or the files there are."""

    options: dict[str, int]
    files: tuple[str, ...]
    prompt: str
    seed: int

    @property
    def size(self) -> int | None:
        return len(self.files) or None

    def __getitem__(self, index: int) -> Task:
        check_index(index, self.size)
        if self.files:
            name, game = Path(self.files[index]).stem, {"file": self.files[index]}
        else:
            made = int(generator(self.seed, index).integers(2**31))
            name, game = f"{self.seed}/{index}", {**self.options, "seed": made}  # type: ignore[dict-item]
        return Task(f"textworld/{name}", self.prompt, {"game": game, "index": index}, "none", meta={"game": game})


@part("environment", "textworld")
class TextWorld:
    """A house to walk through with a goal to reach, by commands such as ``take key from table``.

    Games are generated from the task's seed and compiled by TextWorld's own compiler, a few seconds for each, once:
    they are kept in ``folder``. A turn's command is its last line, or its ``<action>``. Commands beyond its verbs and
    the directions are not made: an interpreter also restarts, saves and debugs. The verdict is the game's: it passes
    once the game is won, its score is that of the game over the most there is, and a game that is lost scores 0. The
    reward of a turn is what it adds to the score. The state is the set of facts that hold.

    Args:
        rooms, objects: of a generated game.
        quest: commands that it takes at least.
        games: compiled games (``.z8``, with TextWorld's ``.json`` beside each) in place of generated ones: a pattern.
        commands: turns of an episode, at most.
        listed: whether the commands that lead on are told with each observation.
        folder: where generated games are kept; by default within the user's cache.
        interface: ``text``, or ``tool``: the tool ``act`` takes the command.
        seed: of the games, >= 0.

    Raises:
        UsageError: TextWorld is not installed, an option is out of range, or there is no such game.
    """

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
        if min(rooms, objects, quest, commands) < 1 or max(rooms, objects, quest) > 20:
            raise UsageError(
                f"environment 'textworld': rooms {rooms}, objects {objects} and quest {quest} must be 1 to 20, "
                f"and commands {commands} at least 1"
            )
        try:
            import textworld  # noqa: F401
        except ImportError:
            raise UsageError("environment 'textworld' needs TextWorld: pip install 'assay[textworld]'") from None
        files = tuple(sorted(glob.glob(os.path.expanduser(games), recursive=True))) if games is not None else ()
        if games is not None and not files:
            raise UsageError(f"environment 'textworld': no game is at {games!r}")
        if lonely := [f for f in files if not Path(f).with_suffix(".json").is_file()]:
            raise UsageError(f"environment 'textworld': {lonely[0]} has no .json beside it, so nobody can judge it")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "assay" / "textworld"
        self.folder, self.commands, self.listed, self.interface = folder or cache, commands, listed, interface
        prompt = f"A text adventure. Each turn give one command, such as look or open door, by {how(interface)}."
        self._tasks = Games({"rooms": rooms, "objects": objects, "quest": quest}, files, prompt, seed)
        self.game: Any = None
        self._under_way = False

    def tasks(self) -> Games:
        return self._tasks

    def reset(self, task: Task, seed: int) -> Observation:
        import textworld

        if "game" not in task.meta:
            raise UsageError(f"environment 'textworld': task {task.id} has no game; take its own tasks")
        self.close()
        told = ("admissible_commands", "won", "lost", "policy_commands", "score", "max_score", "objective")
        infos = textworld.EnvInfos(**dict.fromkeys((*told, "description", "facts", "verbs"), True))
        self.game = textworld.start(str(_file(dict(task.meta["game"]), self.folder)), infos)
        self.now = self.game.reset()
        self.left, self._under_way = self.commands, True
        words = [task.question, self.now.objective or "", self.now.description or ""]
        opened = self._told("\n\n".join(w.strip() for w in words if w.strip()))
        return self._seen((Message(role="user", content=opened),), (ACT,) if self.interface == "tool" else ())

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        self.left -= 1
        command, error = taken(action, self.interface)
        error = error or self._wrong(command)
        before, reply = self._score(), error
        if not error:
            known = {c.casefold() for c in self.now.admissible_commands}
            self.now, _, _ = self.game.step(command)
            said = " ".join(self.now.feedback.split("*** The End ***")[0].split())
            # What the game answers to a command that leads nowhere says so itself.
            error = "" if " ".join(command.casefold().split()) in known else said
            reply = self._told(said)
        over = bool(self.now.won or self.now.lost)
        self._under_way = not over and self.left > 0
        messages, error = answered(action, reply, error)
        gained = (self._score() - before) / max(1, int(self.now.max_score or 1))
        return Step(self._seen(messages), gained, over, not over and not self.left, valid=not error, error=error)

    def verdict(self) -> Verdict:
        if self.now.won:
            return Verdict.right("the game is won")
        most = max(1, int(self.now.max_score or 1))
        score = 0.0 if self.now.lost else min(max(self._score() / most, 0.0), 1.0)
        return Verdict(score, False, {}, "the game is lost" if self.now.lost else "the game is not won")

    def close(self) -> None:
        game, self.game, self._under_way = self.game, None, False
        if game is not None:
            game.close()

    def gold(self) -> Sequence[Action]:
        """Return the commands that the game itself says win it from here."""
        write = say if self.interface == "text" else lambda line: call(ACT.name, action=line)
        return [write(command) for command in self.now.policy_commands or ()]

    def state_json(self) -> Any:
        facts = sorted(str(fact) for fact in self.now.facts or ())
        return {"won": bool(self.now.won), "lost": bool(self.now.lost), "score": self._score(), "facts": facts}

    def _score(self) -> int:
        return int(self.now.score or 0)

    def _wrong(self, command: str) -> str:
        """Return why a command is not given to the game."""
        verbs = {*self.now.verbs, *MOVES}
        first = command.split()[0].casefold() if command.split() else ""
        if not first:
            return "no command was given"
        if first not in verbs:
            return f"there is no verb {first[:20]!r}; there are {', '.join(sorted(self.now.verbs))}"
        if len(command) > LONGEST or not (command.isascii() and command.isprintable()):
            return f"a command is a line of at most {LONGEST} plain characters"
        return "one command a turn" if any(c in command for c in ".;") else ""

    def _told(self, said: str) -> str:
        """Return what is said, with the commands that lead on if they are listed."""
        return f"{said}\nCommands: {', '.join(self.now.admissible_commands)}" if self.listed else said

    def _seen(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Observation:
        key = hashlib.blake2b(json.dumps(self.state_json()).encode(), digest_size=16).hexdigest()
        can = () if self.now.won or self.now.lost else tuple(self.now.admissible_commands)
        return Observation(messages, tools, key, can or None)


def _file(game: dict[str, Any], folder: Path) -> Path:
    """Return the compiled game, compiled now if it is not there; others may do the same at the same time."""
    if "file" in game:
        return Path(game["file"])
    import textworld

    name = "-".join(f"{key}{game[key]}" for key in ("rooms", "objects", "quest", "seed"))
    made = folder / f"{textworld.__version__}-{name}.z8"
    with _MAKING:
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
