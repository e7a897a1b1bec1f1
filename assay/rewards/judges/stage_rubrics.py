"""What the stages of a response are worth by rubrics that evolve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.rubrics import Rubrics


@part("reward", "stage_rubrics")
@dataclass(slots=True)
class StageRubrics:
    """R_ik, the share of the items of its rubric that stage k meets, on the stage's last own token; R_i = 0.

    A stage that there is none of earns nothing. No reward where the judge failed on any stage. Terms: the score of each
    stage.

    Source: RubricEM (arXiv 2605.10899).

    Args:
        rubrics: see :class:`assay.signals.rubrics.Rubrics`; a table of its options, or one made already.
    """

    rubrics: Any

    def __post_init__(self) -> None:
        if isinstance(self.rubrics, Mapping):
            self.rubrics = Rubrics(**self.rubrics)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.rubrics, self.rubrics.stages})

    def __call__(self, batch: Batch) -> Reward:
        scores = batch.signals[self.rubrics.name].to(batch.rewards.dtype)
        stages = batch.signals[self.rubrics.stages.name]
        told = ~scores.isnan().any(-1)
        tokens = torch.zeros(batch.mask.shape, dtype=scores.dtype)
        for k in range(scores.shape[1]):
            here = (stages == k) & batch.mask
            last = here & (here.flip(1).cumsum(1).flip(1) == 1)
            tokens += torch.where(last & told[:, None], scores[:, k : k + 1].nan_to_num(), 0)
        terms = {self.rubrics.called(k): scores[:, k].nan_to_num() for k in range(scores.shape[1])}
        return Reward(torch.zeros_like(batch.rewards), tokens, judged(batch) & told, terms)
