"""A reward that has nothing to do with the response: the control that a gain must be told from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part


@part("reward", "random")
@dataclass(slots=True)
class RandomReward:
    """R_i = 1 with probability ``chance``, else 0, drawn anew for each sample whatever its task and response.

    Equal responses get rewards of their own: a reward that were a function of the response, even a random one, could be
    learned. Verdicts play no part, so that ``pass_rate`` still says how many responses are right; a sample whose
    verifier abstained has no reward, as elsewhere.

    Source: the control of "Spurious Rewards" (arXiv 2506.10947).

    Args:
        chance: in (0, 1).
        seed: of the draws.

    Raises:
        UsageError: ``chance`` or ``seed`` out of range.
    """

    chance: float = 0.5
    seed: int = 0
    _drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.chance < 1 or self.seed < 0:
            raise UsageError(
                f"reward 'random': needs chance in (0, 1) and seed >= 0, not {self.chance:g} and {self.seed}"
            )

    def __call__(self, batch: Batch) -> Reward:
        drawn = np.random.default_rng([self.seed, self._drawn]).random(len(batch)) < self.chance
        self._drawn += 1
        values = torch.from_numpy(drawn).to(batch.rewards)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        return Reward(values, valid=valid, terms={"random": values})

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self._drawn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._drawn = int(state["drawn"])
