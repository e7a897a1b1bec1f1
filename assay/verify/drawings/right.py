"""A score without an end: how far to the right a point was drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.errors import UsageError
from assay.policies.flow.samples import point
from assay.registry import part
from assay.types import Task, Verdict


@part("verify", "right")
@dataclass(frozen=True, slots=True)
class Right:
    """Scores sigmoid((x_1 - middle) / width) for a point x: a proxy that can be hacked, as it has no best point.

    Args:
        middle: first coordinate at which the score is 1/2, and from where on a point passes.
        width: how far from it the score is .73.

    Raises:
        UsageError: ``width`` is not above 0.
    """

    middle: float = 2.0
    width: float = 2.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.middle) and 0 < self.width < math.inf):
            raise UsageError("verifier 'right': middle must be a number, and width one above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        found = point(response)
        if found is None:
            return Verdict.wrong("not a point")
        x = float(found[0])
        return Verdict(1 / (1 + math.exp(min(700.0, (self.middle - x) / self.width))), x >= self.middle)
