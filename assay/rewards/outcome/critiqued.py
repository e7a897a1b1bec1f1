"""A judge's reward for the label and for the critique that leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.outcome.verdict import VerdictReward
from assay.signals.judges.critique_reward import CritiqueReward
from assay.types import Task


@part("reward", "critiqued")
@dataclass(frozen=True, slots=True)
class Critiqued:
    """R_i = outcome + weight process, the process only where the outcome is 1.

    The outcome is the verdict's score, the process what ``critiques`` says of the response's critique. A sample whose
    verifier abstained, or whose critique should be matched and could not, has no reward. Terms: ``outcome``;
    ``process``, of every sample; ``sound``, that of right ones.

    Source: RM-NLHF (arXiv 2601.07349); the condition is a choice.

    Args:
        critiques: see above.
        weight: of the process.
    """

    critiques: CritiqueReward
    weight: float = 1.0

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.critiques})

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for tasks with critiques and nobody to match them."""
        self.critiques.check_tasks(tasks)

    def __call__(self, batch: Batch) -> Reward:
        found, outcome = VerdictReward()(batch), torch.tensor([v.passed is True for v in batch.verdicts])
        said = batch.signals[self.critiques.name].to(batch.rewards.dtype)
        process = said.nan_to_num(0.0)
        values = found.values + torch.where(outcome, self.weight * process, 0)
        assert found.valid is not None
        terms = {"outcome": found.values, "process": process, "sound": torch.where(outcome, process, 0)}
        return Reward(values, valid=found.valid & ~said.isnan(), terms=terms)
