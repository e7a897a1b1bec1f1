"""Rewards as they were when a response was put on record, by the policy of then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import build, part


@part("reward", "noted")
@dataclass(frozen=True, slots=True)
class Noted:
    """R_i = ``meta["noted"]`` of a response that has one, none where that is ``None``; of others what ``of`` says.

    Curriculum ``rounds`` notes what the run's reward says of the responses of a round, once, by the policy that gave
    them: by this part it stays what it was while the policy learns.

    Term: ``noted``, where any response has a note; else those of ``of``.

    Args:
        of: a reward.
    """

    of: Any = "verdict"

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", build("reward", self.of))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset(getattr(self.of, "needs", ()))

    def __call__(self, batch: Batch) -> Reward:
        found: Reward = self.of(batch)
        known = torch.tensor(["noted" in episode.meta for episode in batch.episodes], dtype=torch.bool)
        if not bool(known.any()):
            return found
        notes = [episode.meta.get("noted") for episode in batch.episodes]
        told = torch.tensor([note is not None for note in notes], dtype=torch.bool)
        values = torch.tensor([0.0 if note is None else note for note in notes], dtype=batch.rewards.dtype)
        valid = batch.valid if found.valid is None else found.valid
        tokens = None if found.tokens is None else torch.where(known[:, None], 0, found.tokens)
        values = torch.where(known, values, found.values)
        return Reward(values, tokens, torch.where(known, told, valid), {"noted": values})
