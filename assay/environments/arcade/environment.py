"""The games as one environment: a clock that stands still while the player thinks, or does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.arcade.game import EVENTS, WAIT, Event, read_event
from assay.environments.arcade.games import ARCADE
from assay.environments.arcade.picture import picture_of
from assay.environments.base import Action, Step
from assay.environments.lines import Interface, how
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict

Name = Literal["runner", "catcher", "cavern", "merge", "stall"]
NAMES: tuple[Name, ...] = ("runner", "catcher", "cavern", "merge", "stall")
RATE = 10
"""Ticks of the clock in a second."""
BEAM = 40
"""States that the search for a plan keeps."""

# Places in a state.
GAME, HELD, POINTER, BEST, FIRST, GAMES, CLOCK, PROPOSED, VALID = range(9)


@dataclass(frozen=True, slots=True)
class ArcadeTasks:
    """Endless games, which take turns; all that chance brings is drawn from ``meta["seed"]``."""

    seed: int
    names: tuple[str, ...]
    told: str

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        name = self.names[check_index(index, None) % len(self.names)]
        drawn = int(generator(self.seed, index).integers(2**62))
        game = ARCADE[name]
        told = self.told.format(names=", ".join(game.table))
        return Task(
            id=f"arcade/{self.seed}/{name}/{index}",
            prompt=f"{game.rules} The goal is a score of {game.target:g}.\n{told}",
            reference={"game": name, "seed": drawn},
            kind="none",
            meta={"game": name, "genre": game.genre, "seed": drawn},
        )


@part("environment", "arcade")
class ArcadeGames(Stated):
    """Small games with a clock, one of each genre: runner, arcade, platformer, puzzle, simulation.

    With ``control = "events"`` a turn is one event of keyboard or mouse; with ``"semantic"`` one of the game's named
    actions, which a fixed table turns into such events. Time passes by ``wait`` alone: while the player thinks the
    clock stands still, however long that takes. With ``realtime`` it goes on meanwhile, ten ticks a second of thought,
    with the keys that are held; ``latency`` takes so many seconds for every turn instead of measuring them, which
    repeats itself. What chance brings hangs on the game's number and the clock, so the same events come to the same
    state by either control.

    A game that is lost begins anew with the next wait, key or click. The verdict is of the state: progress
    clip((best - first) / (target - first), 0, 1), of the best score of all games so far; it passes, and the episode
    ends, when that is 1. Notes on the part ``actions`` say how many were ``proposed`` and ``valid``.

    Args:
        names: of the games, which take turns: ``runner``, ``catcher``, ``cavern``, ``merge``, ``stall``.
        control: ``events`` or ``semantic``.
        realtime: whether the clock goes on while the player thinks.
        latency: seconds of thought a turn, for ``realtime``; ``None`` measures them.
        actions: turns of an episode, at most.
        interface: ``text`` or ``tool``.
        seed: of the tasks, >= 0.
        frames: how the board is shown: as ``text``, or as a ``picture`` for policies that see.

    Raises:
        UsageError: no such game, no actions, or a negative latency; pictures without Pillow.

    Source: GameWorld (arXiv 2604.07429).
    """

    now: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        names: Sequence[Name] = NAMES,
        control: Literal["events", "semantic"] = "semantic",
        realtime: bool = False,
        latency: float | None = None,
        actions: int = 100,
        interface: Interface = "text",
        seed: int = 0,
        frames: Literal["text", "picture"] = "text",
    ):
        check_seed("environment 'arcade'", seed)
        if not names or len(set(names)) < len(names) or actions < 1 or (latency or 0) < 0:
            raise UsageError(
                f"environment 'arcade': it needs games, each once, not {list(names)}, actions {actions} >= 1 and "
                "latency >= 0"
            )
        super().__init__(interface, actions)
        self.control, self.realtime, self.latency, self.frames = control, realtime, latency, frames
        self.repeats = not realtime or latency is not None
        what = f"event a turn, by {how(interface)}:\n{EVENTS}" if control == "events" else ""
        what = what or f"action a turn, by {how(interface)}: {{names}}."
        self._tasks = ArcadeTasks(seed, tuple(names), f"Take one {what}")

    def tasks(self) -> ArcadeTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        name = str(task.meta.get("game", ""))
        if name not in self._tasks.names:
            raise UsageError(
                f"environment 'arcade': task {task.id} is of {name!r}; it has {', '.join(self._tasks.names)}"
            )
        self.game, self.drawn = ARCADE[name], int(task.meta["seed"])
        game = self.game.start(generator(self.drawn, 0))
        score = self.game.score(game)
        self.seen = self.now()
        return game, (), (0.5, 0.5), score, score, 0, 0, 0, 0

    def status(self, state: State) -> str:
        """Return ``ready`` before the first tick of a game, ``terminal`` where it is lost, else ``playing``."""
        return "terminal" if self.game.over(state[GAME]) else "playing" if state[CLOCK] else "ready"

    def show(self, state: State) -> str:
        told = f"score {self.game.score(state[GAME]):g}, best {state[BEST]:g}, tick {state[CLOCK]}"
        keys = f", held {' '.join(state[HELD])}" if state[HELD] else ""
        lost = "Lost: the next action begins a new game.\n" if self.status(state) == "terminal" else ""
        board = self.game.show(state[GAME]) if self.frames == "text" else MARK
        return f"{board}\n{lost}{told}{keys}"

    def pictures(self, state: State) -> Sequence[Picture]:
        return () if self.frames == "text" else (picture_of(self.game.show(state[GAME])),)

    def written(self, line: str) -> str:
        return line.strip()

    def actions(self, state: State) -> Sequence[str]:
        if self.over(state):
            return []
        if self.control == "semantic":
            return list(self.game.table)
        return list(dict.fromkeys(event for events in self.game.table.values() for event in events))

    def problem(self, state: State, action: str) -> str:
        if self.control == "semantic":
            return super().problem(state, action)
        event = read_event(action)
        return event if isinstance(event, str) else ""

    def step(self, action: Action) -> Step:
        if self._under_way and self.realtime:
            thought = self.now() - self.seen if self.latency is None else self.latency
            self.state = self._passed(self.state, round(thought * RATE))
        made = super().step(action)
        self.state = (*self.state[:PROPOSED], self.state[PROPOSED] + 1, self.state[VALID] + made.valid)
        self.seen = self.now()
        return made

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        for line in self.game.table[action] if self.control == "semantic" else (action,):
            event = read_event(line)
            assert isinstance(event, Event)
            state = self._happened(state, event)
        return state, ""

    def _happened(self, state: State, event: Event) -> State:
        if self.game.over(state[GAME]) and event.kind in ("wait", "key_down", "mouse_down"):
            number = state[GAMES] + 1
            game = self.game.start(generator(self.drawn, number))
            state = (game, *state[HELD:GAMES], number, 0, *state[PROPOSED:])
        game, keys, pointer, *rest = state
        if event.kind == "wait":
            return self._passed(state, WAIT)
        if event.kind == "key_down" and event.key not in keys:
            made = self.game.press(game, event.key, self._drawn(state, 1))
            return self._scored((made, tuple(sorted((*keys, event.key))), pointer, *rest))
        if event.kind == "key_up":
            return (game, tuple(key for key in keys if key != event.key), pointer, *rest)
        if event.kind == "mouse_move":
            return (game, keys, event.at, *rest)
        if event.kind == "mouse_down":
            return self._scored((self.game.click(game, pointer), keys, pointer, *rest))
        return state

    def _passed(self, state: State, ticks: int) -> State:
        """Return the state so many ticks later, or when the game is lost."""
        for _ in range(ticks):
            if self.game.over(state[GAME]):
                break
            game = self.game.tick(state[GAME], state[HELD], self._drawn(state, 0))
            state = self._scored((game, *state[HELD:CLOCK], state[CLOCK] + 1, *state[PROPOSED:]))
        return state

    def _scored(self, state: State) -> State:
        """Return the state with the best score so far."""
        return (*state[:BEST], max(state[BEST], self.game.score(state[GAME])), *state[FIRST:])

    def _drawn(self, state: State, what: int) -> np.random.Generator:
        # Of keys, by the board they are pressed on: several can be pressed within a tick.
        score = int(self.game.score(state[GAME])) if what else 0
        board = sum(map(int, state[GAME][0])) if what and isinstance(state[GAME][0], tuple) else 0
        return generator(self.drawn, state[GAMES], state[CLOCK], what, score, board)

    def over(self, state: State) -> bool:
        return self.progress(state) >= 1

    def progress(self, state: State) -> float:
        """clip((best - first) / (target - first), 0, 1)."""
        return progress([state[BEST]], state[FIRST], self.game.target)

    def judged(self, state: State) -> Verdict:
        found = self.progress(state)
        counts = {"actions | proposed": float(state[PROPOSED]), "actions | valid": float(state[VALID])}
        told = f"{state[VALID]} of {state[PROPOSED]} actions valid"
        return Verdict(found, found >= 1, {"actions": None, **counts}, told)

    def key(self, state: State) -> str:
        return f"{self.task.meta['game']}: {super().key(state[:PROPOSED])}"

    def plan(self, state: State) -> Sequence[str]:
        """Return actions that win, knowing what chance will bring; empty where the search finds none."""
        if self.over(state):
            return []
        control, self.control = self.control, "semantic"
        chance = np.random.default_rng(0)
        try:
            paths: list[tuple[State, list[str]]] = [(state, [])]
            while paths:
                found: dict[str, tuple[State, list[str]]] = {}
                for at, done in paths:
                    for action in self.game.table:
                        then, _ = self.after(at, action, chance)
                        if self.over(then):
                            return self._as_events([*done, action], control)
                        if not self.game.over(then[GAME]) and len(done) + 1 < self.moves:
                            found.setdefault(self.key(then), (then, [*done, action]))
                order = sorted(found.values(), key=lambda it: -self.game.score(it[0][GAME]))
                # Some of all: what scores least now may be what goes on.
                paths = [*order[: BEAM // 2], *order[BEAM // 2 :: max(1, 2 * len(order) // BEAM)]][:BEAM]
            return []
        finally:
            self.control = control

    def _as_events(self, actions: Sequence[str], control: str) -> list[str]:
        if control == "semantic":
            return list(actions)
        return [event for action in actions for event in self.game.table[action]]


def progress(scores: Sequence[float], first: float, target: float) -> float:
    """clip((max_t q_t - first) / (target - first), 0, 1), whatever came of the game after its best score."""
    return min(max((max(scores) - first) / (target - first), 0.0), 1.0)
