"""Credit of stages: a stage is worth what it earned and what later stages earned after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import normalise
from assay.registry import part
from assay.signals.stages import Stages

DOWNSTREAM = ((1.0, 0.4, 0.6, 0.8), (0.0, 1.0, 0.4, 0.8), (0.0, 0.0, 1.0, 0.8), (0.0, 0.0, 0.0, 1.0))
"""Of plan, research, review and answer."""


@part("credit", "stages")
@dataclass(slots=True)
class StageCredit:
    """A_it = (G_ik - mean_j G_jk) / (std_j G_jk + epsilon) for a token t of stage k, over the responses j of the group.

        G_ik = sum_{j >= k} weights_kj R_ij

    R_ik is what was placed on the tokens of stage k, 0 where a response has no such stage. With the unit matrix every
    stage is judged by itself; with ones in the last column alone all of them by the last.

    Source: stage-structured GRPO, RubricEM (arXiv 2605.10899).

    Args:
        weights: a row for each stage, upper triangular; :data:`DOWNSTREAM` by default.
        stages: what a stage is.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: added to it.

    Raises:
        UsageError: the matrix is not square, not of that many stages, or not upper triangular.
    """

    weights: Sequence[Sequence[float]] = DOWNSTREAM
    stages: Stages = field(default_factory=Stages)
    ddof: int = 1
    epsilon: float = 1e-6

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        size = len(self.stages.tags)
        square = len(self.weights) == size and all(len(row) == size for row in self.weights)
        if not square or any(self.weights[k][j] for k in range(size) for j in range(k)):
            raise UsageError(
                f"credit 'stages': weights must be upper triangular, {size} x {size}, not {self.weights}: a stage "
                "cannot earn what came before it"
            )

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.stages})

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        stages, dtype = batch.signals[self.stages.name], batch.rewards.dtype
        earned = torch.zeros(len(batch), len(self.weights), dtype=dtype)
        if batch.token_rewards is not None:
            own = stages >= 0
            rows = torch.arange(len(batch))[:, None].expand_as(stages)
            earned.index_put_((rows[own], stages[own]), batch.token_rewards.to(dtype)[own], accumulate=True)
        returns = earned @ torch.tensor([list(row) for row in self.weights], dtype=dtype).T
        compared = [
            normalise(column, batch.group, batch.active, "center_std", self.ddof, self.epsilon)
            for column in returns.unbind(-1)
        ]
        advantages = torch.stack(compared, -1).gather(1, stages.clamp(min=0))
        return torch.where(batch.mask & (stages >= 0) & batch.active[:, None], advantages, 0)
