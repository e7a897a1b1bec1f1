"""Several selections, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import build, part


@part("select", "chain")
class Chain:
    """The product of the weights of several parts; each sees, as ``batch.weights``, what the ones before it left.

    Members with ``rounds`` above 1 replace prompts as they would alone.

    Args:
        parts: select parts (names, tables or parts already made).
    """

    def __init__(self, parts: Sequence[Any]):
        self.parts = [build("select", spec) for spec in parts]
        self.needs = frozenset(n for p in self.parts for n in getattr(p, "needs", ()))

    @property
    def members(self) -> list[Any]:
        return self.parts

    @property
    def rounds(self) -> int:
        """The most that a member asks for, see :func:`assay.learning.step.sample`."""
        return max((getattr(p, "rounds", 1) for p in self.parts), default=1)

    def keep(self, batch: Batch) -> Bool[Tensor, "N"]:
        """Return which samples every member keeps that may replace prompts."""
        keep = batch.valid.new_ones(len(batch))
        for select in self.parts:
            if getattr(select, "rounds", 1) > 1:
                keep = keep & select.keep(batch)
        return keep

    def metrics(self) -> dict[str, float]:
        return {k: v for p in self.parts for k, v in getattr(p, "metrics", dict)().items()}

    def replay(self, batch: Batch, rng: np.random.Generator) -> list[Batch]:
        return [old for p in self.parts if hasattr(p, "replay") for old in p.replay(batch, rng)]

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        for select in self.parts:
            batch.weights = batch.weights * select(batch)
        return batch.weights
