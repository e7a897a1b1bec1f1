"""Points of a ring: the smallest thing that a flow can draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task


@part("tasks", "ring")
@dataclass(frozen=True, slots=True)
class Ring:
    """Endless points around the places of a ring, evenly spread; solutions draw any of them, whatever is wanted.

    Args:
        seed: >= 0.
        places: on the ring, the first at (radius, 0), the others counter-clockwise.
        radius, spread: of the ring, and standard deviation around each place.
        wanted: the place that is asked for, from 0; a place of its own for each task if ``None``.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    places: int = 8
    radius: float = 2.0
    spread: float = 0.15
    wanted: int | None = 0

    def __post_init__(self) -> None:
        check_seed("tasks 'ring'", self.seed)
        if self.places < 1 or not (0 < self.radius < math.inf and 0 <= self.spread < math.inf):
            raise UsageError("tasks 'ring': places must be 1 or more, radius above 0 and spread 0 or more")
        if self.wanted is not None and not 0 <= self.wanted < self.places:
            raise UsageError(f"tasks 'ring': wanted {self.wanted} must be a place, 0 to {self.places - 1}")

    @property
    def size(self) -> None:
        return None

    def place(self, number: int) -> tuple[float, float]:
        """Return where a place of the ring is."""
        angle = 2 * math.pi * number / self.places
        return self.radius * math.cos(angle), self.radius * math.sin(angle)

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        drawn = [x + self.spread * rng.standard_normal() for x in self.place(int(rng.integers(self.places)))]
        wanted = int(rng.integers(self.places)) if self.wanted is None else self.wanted
        return Task(
            id=f"ring/{self.seed}/{index}",
            prompt=f"place {wanted} of the ring, point {index}",
            reference=self.place(wanted),
            kind="near",
            solution=" ".join(f"{x:.9g}" for x in drawn),
            meta={"source": "ring", "wanted": wanted},
        )
