"""The outcome, and beside it what the run's second policy says of the steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.process.summed import step_ends
from assay.signals.partner_marks import PartnerMarks


@part("reward", "partner_steps")
@dataclass(frozen=True, slots=True)
class PartnerSteps:
    """R_i is the verdict's score; step k of K earns v_k / K on its last token, v_k = 1 or -1 as the partner says.

    The term ``scored`` is 0 for a response whose steps the partner did not judge one by one, which has no rewards by
    step; ``process`` is the mean of v_k.

    Args:
        marks: what the partner is asked, and how it is read.

    Source: RL Tango (arXiv 2505.15034).
    """

    marks: PartnerMarks = field(default_factory=PartnerMarks)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.marks, self.marks.steps})

    def __call__(self, batch: Batch) -> Reward:
        marks = batch.signals[self.marks.name].to(batch.rewards.dtype)
        told = ~marks.isnan().any(-1)
        ends = step_ends(batch.signals["steps"], torch.ones_like(batch.mask)) & told[:, None]
        placed = torch.where(ends, marks / ends.sum(-1, keepdim=True).clamp(min=1), 0)
        values = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        terms = {"verdict": values, "process": placed.sum(-1), "scored": told.to(values.dtype)}
        return Reward(values, placed, judged(batch), terms)
