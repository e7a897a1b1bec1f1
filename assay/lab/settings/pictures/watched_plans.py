"""Right plans on a table where steps fail, watched by someone or carried out blindly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.environments.tabletop.environment import TabletopWorld
from assay.environments.tools import say


@dataclass(frozen=True, slots=True)
class Setting:
    """Who plans always gives the plan that is right for the table. An arm is who watches: options of the environment.

    Args:
        episodes: of environment ``tabletop``, by each run.
        failure: of a step.
        moves: blocks that are to be moved, at most.
    """

    episodes: int = 60
    failure: float = 0.3
    moves: int = 3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the share of goals ``reached``, and of their conditions that are ``met``; ``rollouts``: episodes."""
        world = TabletopWorld(failure=self.failure, moves=self.moves, seed=seed, **arm)
        verdicts = []
        for i in range(self.episodes):
            # Of one seed all episodes would have the same chance.
            world.reset(world.tasks()[i], seed * self.episodes + i)
            while not world.over(world.state):
                world.step(say(world.plan(world.state)[0]))
            verdicts.append(world.verdict())
        return {
            "reached": float(np.mean([v.score for v in verdicts])),
            "met": float(np.mean([np.mean([float(x or 0) for x in v.parts.values()]) for v in verdicts])),
            "rollouts": float(self.episodes),
        }
