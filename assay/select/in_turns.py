"""Leaves everything out of the steps in which another part learns."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch


class InTurns:
    """Weight 1 in the policy's steps and 0 in the others, by a learner's count of them.

    Args:
        learner: a signal that says whose turn it is (``policys``).
    """

    def __init__(self, learner: Any):
        self.learner = learner

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.learner})

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.full_like(batch.rewards, float(self.learner.policys))
