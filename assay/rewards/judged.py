"""Who may have a reward that is not made of the verdict."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch
from assay.verify.none import told


def judged(batch: Batch) -> Bool[Tensor, "N"]:
    """Samples whose verifier did not fail: it gave a verdict, or there is none (verifier ``none``)."""
    return torch.tensor([told(v) for v in batch.verdicts], dtype=torch.bool)
