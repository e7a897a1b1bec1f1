"""What a learning reward model that sees the reference answer says of a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.reference_reward import ReferenceReward


@part("reward", "reference_model")
@dataclass(frozen=True, slots=True)
class ReferenceModel:
    """R_i = s_i of the signal ``reference_reward``; verdicts only teach it. No reward where the verifier failed.

    Args:
        model: the signal, see :class:`assay.signals.reference_reward.ReferenceReward`.

    Source: Cooper (arXiv 2508.05613).
    """

    model: ReferenceReward

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.model})

    def __call__(self, batch: Batch) -> Reward:
        values = batch.signals[self.model.name].to(batch.rewards.dtype)
        return Reward(values, valid=judged(batch), terms={"reference_model": values})
