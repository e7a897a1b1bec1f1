"""Credit for the reasoning alone: what a response answers itself earns nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import build, part
from assay.signals.reasoning import OPENING, Sections


@part("credit", "reasoning")
@dataclass(slots=True)
class ReasoningOnly:
    """The advantages of another credit on a response's reasoning and the opening of its answer, 0 on what follows.

    For rewards that do not depend on the answer a response gives, such as the likelihood of the reference after its
    reasoning: on the tokens of the answer they would be noise.

    Args:
        inner: the other credit (name, table or part already made).
        sections: tells reasoning from answer.
    """

    inner: Any = "rloo"
    sections: Sections = field(default_factory=Sections)

    level = "token"

    def __post_init__(self) -> None:
        self.inner = build("credit", self.inner)

    @property
    def members(self) -> list[Any]:
        return [self.inner]

    @property
    def group_relative(self) -> bool:
        return bool(getattr(self.inner, "group_relative", False))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.sections, *getattr(self.inner, "needs", ())})

    @property
    def summary(self) -> dict[str, str]:
        return dict(getattr(self.inner, "summary", {}))

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        return torch.where(batch.signals["sections"] <= OPENING, self.inner(batch), 0)
