"""Imitate a teacher's distribution over next tokens, and not only the tokens that he said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.ops import IMPOSSIBLE, Aggregation, aggregate
from assay.ops.divergence import bucketed, cross_entropy
from assay.signals.reread.teacher_tokens import TeacherTokens


@dataclass(frozen=True, slots=True)
class SoftLabels:
    """l_it = -sum_c q(c | x, y_<t) log pi(c | x, y_<t) over the teacher's likeliest tokens c, and all others as one.

    Where he gives his own token all of it, that is the log-loss of the token. Advantages are not read.

    Args:
        tokens: who the teacher is, and how many of his tokens are learned.
        aggregation: how token losses become one number, see :func:`assay.ops.aggregate`.
    """

    tokens: TeacherTokens
    aggregation: Aggregation = "token_mean"

    reads = "nothing"
    ignores_rewards = True
    live = frozenset({"candidate_logprobs"})

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.tokens})

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        student = batch.live["candidate_logprobs"].clamp(min=IMPOSSIBLE)
        teacher = batch.signals["teacher_logprobs"].to(student)
        return Loss(aggregate(cross_entropy(bucketed(student), bucketed(teacher)), batch, self.aggregation))
