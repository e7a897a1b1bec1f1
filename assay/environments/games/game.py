"""What a game is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.environments.stated import State
from assay.types import Verdict

Chance = Callable[[int], np.random.Generator]
"""The chance of the next action (0), of the one after it (1), and so on: those that the episode will draw from."""


class Game(Protocol):
    """The rules of a game; all methods are pure, and states plain data.

    Attributes:
        rules: for the policy, in a few lines.
    """

    rules: str

    def setup(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw an instance, as plain data."""
        ...

    def start(self, setup: Mapping[str, Any], chance: np.random.Generator) -> State: ...

    def show(self, state: State) -> str: ...

    def actions(self, state: State) -> list[str]: ...

    def play(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        """Return what an action leads to, and what is said of it beside the board."""
        ...

    def over(self, state: State) -> bool: ...

    def verdict(self, state: State) -> Verdict: ...

    def plan(self, state: State, chance: Chance) -> Sequence[str]:
        """Return actions that win, knowing what is hidden and what chance will bring; empty where none were found."""
        ...

    def key(self, state: State) -> str:
        """Return a key of what the policy can know of the state."""
        ...


@runtime_checkable
class Judged(Protocol):
    """A game with an oracle, which judges an action by what can be known."""

    def judge(self, state: State, action: str) -> Verdict: ...


def grid(cells: Sequence[str], width: int) -> str:
    """Return cells as lines of a board."""
    return "\n".join(" ".join(cells[i : i + width]) for i in range(0, len(cells), width))
