"""How far down the vocabulary the reference answer's tokens are, after the response's reasoning."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood


@part("signal", "reference_ranks")
@dataclass(frozen=True, slots=True)
class ReferenceRanks:
    """Signal ``(N, K, L)``: how many tokens are likelier than y*_j where :class:`ReferenceLikelihood` tells of it.

    0 is the likeliest; NaN where there is nothing. It takes a pass of its own.

    Args:
        likelihood: where y* stands, and under which model.
        name: of the signal.

    Raises:
        UsageError: the likelihood is told by a model that is not this run's.
    """

    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)
    name: str = "reference_ranks"

    whole = True

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood.model, str):
            raise UsageError("signal 'reference_ranks': ranks are told by this run's policy or reference")

    @property
    def models(self) -> frozenset[str]:
        return self.likelihood.models

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K L"]:
        at, what, told = self.likelihood.plan(batch, models)
        return self.likelihood.laid_out(models.continuation_ranks(batch, at, what, self.likelihood.model), told)
