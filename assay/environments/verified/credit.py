"""What a rubric's points come to where something did not apply, was nobody's fault, or was wrong once and for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aim:
    """A criterion of a task: what is to be done, its points, and when it applies if it does not always."""

    text: str
    points: float
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a trajectory earns of a criterion.

    Attributes:
        earned: points that what was seen shows.
        most: points of the criterion.
        applies: whether its condition holds; a criterion that does not apply counts neither way.
        blocked: what is missing is due to what the agent could not control.
        first: place of an earlier criterion that lost points by the same error; ``None`` where there is none.
        as_if: points that it would earn had that error not been made.
        claimed: points that the agent's own account would earn; ``None`` where it was not asked for.
    """

    earned: float
    most: float
    applies: bool = True
    blocked: bool = False
    first: int | None = None
    as_if: float = 0.0
    claimed: float | None = None

    @property
    def credit(self) -> float:
        """The points that count: all of what was blocked; of an error charged elsewhere, what it would have earned."""
        if self.blocked:
            return self.most
        return self.earned if self.first is None else max(self.earned, self.as_if)

    @property
    def contradicted(self) -> bool:
        """Whether the agent claims more than can be seen."""
        return self.applies and self.claimed is not None and self.claimed > self.earned


def process(marks: Sequence[Mark]) -> float | None:
    """Return the points that count over all that apply, in [0, 1]; ``None`` where no criterion applies."""
    here = [mark for mark in marks if mark.applies]
    most = sum(mark.most for mark in here)
    return sum(mark.credit for mark in here) / most if most else None
