"""Overlong filtering: a response that was cut off is not learned from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import part


@part("select", "overlong")
@dataclass(frozen=True, slots=True)
class OverlongFilter:
    """Truncated responses (stopped by ``length`` or ``context``) leave the update.

    Their rewards still count for their siblings' baseline, as in DAPO's and TRL's implementations: the weight stays 1
    and ``batch.mask`` is cleared on their tokens, so they have none to learn from and count in no denominator. With
    ``in_statistics=False`` their weight is 0 and they leave the baseline too.

    Source: DAPO (arXiv 2503.14476), section 3.4.
    """

    in_statistics: bool = True

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        truncated = torch.tensor([e.truncated for e in batch.episodes], dtype=torch.bool)
        if not self.in_statistics:
            return (~truncated).to(batch.rewards.dtype)
        batch.mask = batch.mask & ~truncated[:, None]
        return torch.ones_like(batch.rewards)
