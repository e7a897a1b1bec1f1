"""A shape in a colour at a place, to be drawn; the drawings that are shown often have something wrong."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.media import Picture
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS, SHAPES, Drawn, draw
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task


@part("tasks", "sketches")
@dataclass(frozen=True, slots=True)
class Sketches:
    """``a red circle in row 1, column 2``: all combinations of shapes, colours and places of a grid.

    Args:
        seed: >= 0.
        grid: cells on a side.
        pixels: on a side of a cell.
        shapes, colours: some of what :class:`~assay.tasks.pictures.shapes.Shapes` knows.
        faithful: share of solutions that draw what is asked; the others have another shape, colour or place.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.
    """

    seed: int = 0
    grid: int = 2
    pixels: int = 8
    shapes: tuple[str, ...] = ("circle", "square", "cross")
    colours: tuple[str, ...] = ("red", "green", "blue")
    faithful: float = 0.4

    def __post_init__(self) -> None:
        check_seed("tasks 'sketches'", self.seed)
        if not 1 <= self.grid <= 9 or not 4 <= self.pixels <= 64 or not 0 <= self.faithful <= 1:
            raise UsageError("tasks 'sketches': grid must be 1 to 9, pixels 4 to 64, and faithful a share")
        odd = [x for x in self.shapes if x not in SHAPES] + [x for x in self.colours if x not in COLOURS]
        if odd or not self.shapes or not self.colours:
            raise UsageError(
                f"tasks 'sketches': {odd[0] if odd else 'nothing'!r} cannot be drawn; shapes are {', '.join(SHAPES)}, "
                f"colours {', '.join(COLOURS)}"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        kinds = (self.shapes, self.colours, range(self.grid), range(self.grid))
        wanted = [int(rng.integers(len(kind))) for kind in kinds]
        shown = list(wanted)
        if rng.random() >= self.faithful:
            changes = [i for i, kind in enumerate(kinds) if len(kind) > 1]
            if changes:
                at = changes[int(rng.integers(len(changes)))]
                shown[at] = (shown[at] + 1 + int(rng.integers(len(kinds[at]) - 1))) % len(kinds[at])
        shape, colour, row, column = wanted
        return Task(
            id=f"sketches/{self.seed}/{index}",
            prompt=f"a {self.colours[colour]} {self.shapes[shape]} in row {row + 1}, column {column + 1}",
            reference=self._picture(wanted),
            kind="likeness",
            solution=self._picture(shown),
            meta={"source": "sketches", "faithful": shown == wanted},
        )

    def _picture(self, found: list[int]) -> str:
        shape, colour, row, column = found
        return Picture.of(
            draw([Drawn(self.shapes[shape], self.colours[colour], row, column)], self.grid, self.pixels)
        ).url
