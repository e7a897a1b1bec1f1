"""Only right or only wrong responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import part


@part("select", "verdict")
@dataclass(frozen=True, slots=True)
class OfVerdict:
    """Weight 1 for responses judged ``right`` (or ``wrong``), else 0; an abstention is neither.

    With the objective ``sft``, ``right`` is rejection fine-tuning.

    Args:
        verdict: which to keep.
        per_prompt: keep at most this many of a prompt, the first ones; ``None`` for all.
    """

    verdict: Literal["right", "wrong"] = "right"
    per_prompt: int | None = None

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        keep = torch.tensor([v.passed is (self.verdict == "right") for v in batch.verdicts], dtype=torch.bool)
        if self.per_prompt is not None:
            same = batch.prompt_group[:, None] == batch.prompt_group[None]
            before = (same & keep[None]).tril(-1).sum(-1)
            keep = keep & (before < self.per_prompt)
        return keep.to(batch.rewards.dtype)
