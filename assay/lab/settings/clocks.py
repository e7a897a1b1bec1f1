"""Games with a clock, played by the same player thinking fast and thinking slowly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.environments.arcade.environment import NAMES, ArcadeGames
from assay.environments.base import Action
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """The player knows what to do if the clock waits for him, and does that, an action a turn.

    An arm is ``realtime``, whether the clock goes on while he thinks. He thinks ``fast`` or ``slow`` seconds a turn.

    Args:
        games: of environment ``arcade``, played by each run.
        fast, slow: seconds.
        actions: turns of a game.
    """

    games: Sequence[str] = NAMES
    fast: float = 0.0
    slow: float = 0.5
    actions: int = 60

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return mean progress thinking ``fast`` and ``slow``; ``kept``: the second less the first; ``rollouts``."""
        names: Any = tuple(self.games)
        waiting = ArcadeGames(names, actions=self.actions, seed=seed)
        tasks = [waiting.tasks()[i] for i in range(len(names))]
        plans = []
        for task in tasks:
            waiting.reset(task, seed)
            plans.append(waiting.gold())
        found = {}
        for pace, seconds in (("fast", self.fast), ("slow", self.slow)):
            world = ArcadeGames(names, realtime=bool(arm["realtime"]), latency=seconds, actions=self.actions, seed=seed)
            found[pace] = float(np.mean([progress(world, t, p, seed) for t, p in zip(tasks, plans, strict=True)]))
        return {**found, "kept": found["slow"] - found["fast"], "rollouts": float(2 * len(tasks))}


def progress(world: ArcadeGames, task: Task, plan: Sequence[Action], seed: int) -> float:
    """Return what a plan comes to, as far as the game lets it be played."""
    world.reset(task, seed)
    for action in plan:
        step = world.step(action)
        if step.terminated or step.truncated:
            break
    score = world.verdict().score
    world.close()
    return score
