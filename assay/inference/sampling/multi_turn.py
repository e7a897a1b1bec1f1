"""One episode in an environment, and what is said last is the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.inference.base import Answer, Budget
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask, Task


@part("inference", "multi_turn")
class PlayedOnce:
    """The answer is an episode's last turn, whatever the budget: what a user gets who lets the policy work once.

    What the environment said on the way counts as tokens too. The answer is judged as any other is, by what it says;
    where the state decides, `assay eval` of a recipe that plays the environment judges that.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        sampling: of a turn.
        turns: of an episode, at most.

    Raises:
        UsageError: no such environment, or ``turns`` below 1.
    """

    once = True

    def __init__(self, environment: str | dict[str, Any], sampling: Sampling, turns: int = 8):
        self.player = MultiTurn(environment, sampling, turns=turns)

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        seeds = rng.integers(2**63, size=len(tasks)).tolist()
        groups = self.player.play([Ask(task, 1) for task in tasks], seeds, engine)
        episodes = [group.episodes[0] for group in groups]
        return [Answer(own_turns(e)[-1].text or e.text, (e,), len(e.tokens)) for e in episodes]
