"""What a game with a clock is, and events of keyboard and mouse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

WAIT = 3
"""Ticks of the clock that an event ``wait`` takes; all others take none."""
KEYS = ("Space", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
EVENTS = """mouse_move X Y
mouse_down
mouse_up
key_down KEY
key_up KEY
scroll up|down
wait"""
_MOVE = re.compile(r"mouse_move (\d(?:\.\d{1,4})?) (\d(?:\.\d{1,4})?)")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ``key`` of keys and of the wheel, ``at`` of a move, each coordinate in [0, 1]."""

    kind: str
    key: str = ""
    at: tuple[float, float] = (0.0, 0.0)


def read_event(line: str) -> Event | str:
    """Return the event that a line says, or what is wrong with it."""
    kind, _, rest = line.partition(" ")
    if line in ("mouse_down", "mouse_up", "wait"):
        return Event(line)
    if kind in ("key_down", "key_up"):
        known = {key.lower(): key for key in KEYS}
        return Event(kind, known[rest.lower()]) if rest.lower() in known else f"there are the keys {', '.join(KEYS)}"
    if kind == "scroll":
        return Event(kind, rest) if rest in ("up", "down") else "scroll takes up or down"
    found = _MOVE.fullmatch(line)
    if found and max(float(found[1]), float(found[2])) <= 1:
        return Event("mouse_move", at=(float(found[1]), float(found[2])))
    return f"{line[:60]!r} is no event"


State = tuple[Any, ...]


class Arcade(Protocol):
    """The rules of a game; all methods are pure, and states plain data.

    Attributes:
        rules: for the player, in a few lines.
        genre: runner, arcade, platformer, puzzle or simulation.
        table: named actions, each a fixed list of events.
        target: the score that wins.
    """

    rules: str
    genre: str
    table: Mapping[str, tuple[str, ...]]
    target: float

    def start(self, rng: np.random.Generator) -> State: ...

    def press(self, state: State, key: str, rng: np.random.Generator) -> State:
        """Return what comes of a key that goes down."""
        ...

    def click(self, state: State, at: tuple[float, float]) -> State:
        """Return what comes of the mouse's button going down at a point."""
        ...

    def tick(self, state: State, held: tuple[str, ...], rng: np.random.Generator) -> State:
        """Return the state a tick later, with these keys held."""
        ...

    def over(self, state: State) -> bool:
        """Whether the game is lost, and has to begin anew."""
        ...

    def score(self, state: State) -> float: ...

    def show(self, state: State) -> str: ...


def held(key: str) -> tuple[str, ...]:
    """Return the events of holding a key for a while."""
    return (f"key_down {key}", "wait", f"key_up {key}")
