"""Who may have a reward that is not made of the verdict."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch
from assay.types import Task
from assay.verify.none import NoVerifier

UNJUDGED = NoVerifier()(Task("", ""), "")


def judged(batch: Batch) -> Bool[Tensor, "N"]:
    """Samples whose verifier did not fail: it gave a verdict, or there is none (verifier ``none``)."""
    return torch.tensor([v.passed is not None or v == UNJUDGED for v in batch.verdicts], dtype=torch.bool)
