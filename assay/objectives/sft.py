"""Supervised fine-tuning: maximise the likelihood of given responses."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.ops import IMPOSSIBLE, Aggregation, aggregate
from assay.registry import part


@part("objective", "sft")
@dataclass(frozen=True, slots=True)
class SFT:
    """l_it = -log pi(y_t | x, y_<t), whatever the advantages.

    Args:
        aggregation: how token losses become one number, see :func:`assay.ops.aggregate`.
    """

    aggregation: Aggregation = "token_mean"

    reads = "nothing"
    ignores_rewards = True

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        return Loss(aggregate(-logprobs.clamp(min=IMPOSSIBLE), batch, self.aggregation))
