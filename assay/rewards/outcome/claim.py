"""What the verification of a claim is worth: its label, its evidence and its form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.claim_scores import COLUMNS, ClaimScores, is_claim
from assay.types import Task, Verdict

SCORES = ClaimScores()


@part("reward", "claim")
@dataclass(frozen=True, slots=True)
class ClaimReward:
    """R_i = label v_i l_i + evidence iou_i + form f_i, where the task's label is NOT ENOUGH INFO without v_i.

    l_i is 1 where the label is right; v_i is 1 where all of the evidence is cited, 1/2 where at least half of it is
    (rounded up), else 0; iou_i are the documents both cited and evidence over those that are either; f_i is 1 where the
    response has the form of a verification, see :func:`assay.signals.claim_scores.well_formed`. All are read from what
    the policy wrote, so what it claims to have been shown is none. A task that is no claim is worth its verdict's
    score. Terms: ``label``, ``validity``, ``iou``, ``form``; for NOT ENOUGH INFO the validity is 1.

    Source: Veri-R1 (arXiv 2510.01932), its authors' code.

    Args:
        label, evidence, form: weights.
        weigh: whether the label counts by v.

    Raises:
        UsageError: a weight below 0, or all of them 0.
    """

    label: float = 2.0
    evidence: float = 1.0
    form: float = 1.0
    weigh: bool = True

    reads_more = "no task is a claim, whose reference has a label and evidence"

    def __post_init__(self) -> None:
        weights = (self.label, self.evidence, self.form)
        if min(weights) < 0 or not any(weights):
            raise UsageError(f"reward 'claim': weights {weights} must be at least 0, and not all of them 0")

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({SCORES})

    def __call__(self, batch: Batch) -> Reward:
        found = dict(zip(COLUMNS, batch.signals[SCORES.name].to(batch.rewards.dtype).unbind(-1), strict=True))
        validity = torch.where(found["unknown"] == 1, 1, found["validity"])
        right = found["label"] * validity if self.weigh else found["label"]
        values = self.label * right + self.evidence * found["iou"] + self.form * found["form"]
        plain = torch.tensor([v.score for v in batch.verdicts], dtype=values.dtype)
        terms = {k: found[k].nan_to_num() for k in ("label", "iou", "form")} | {"validity": validity.nan_to_num()}
        return Reward(torch.where(values.isnan(), plain, values), valid=judged(batch), terms=terms)

    def plain(self, task: Task, verdict: Verdict) -> bool:
        """Whether a task is worth its verdict alone."""
        return not is_claim(task)
