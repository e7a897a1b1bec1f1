"""How near a drawn point is to where it should be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.policies.flow.samples import point
from assay.registry import part
from assay.types import Task, Verdict


@part("verify", "near")
@dataclass(frozen=True, slots=True)
class Near:
    """Scores exp(-|x - reference|^2 / (2 scale^2)) for a point x, such as ``1.98 -0.03``; any other text is wrong.

    Args:
        scale: distance at which the score is exp(-1/2).
        within: the point passes up to this distance.

    Raises:
        UsageError: ``scale`` or ``within`` is not above 0; a task's reference is no point.
    """

    scale: float = 1.0
    within: float = 0.5

    def __post_init__(self) -> None:
        if not (0 < self.scale < math.inf and 0 < self.within < math.inf):
            raise UsageError("verifier 'near': scale and within must be numbers above 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = task.reference
        if not isinstance(wanted, list | tuple) or not all(isinstance(x, int | float) for x in wanted):
            raise UsageError(f"task {task.id}: verifier 'near' wants the point's numbers as reference, not {wanted!r}")
        found = point(response)
        if found is None or len(found) != len(wanted):
            return Verdict.wrong(f"not a point of {len(wanted)} numbers")
        distance = float(np.linalg.norm(found - np.asarray(wanted)))
        return Verdict(
            math.exp(-(distance**2) / (2 * self.scale**2)), distance <= self.within, {}, f"{distance:.3g} away"
        )
