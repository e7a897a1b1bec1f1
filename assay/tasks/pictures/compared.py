"""Pictures whose shapes are to be counted and compared, with a checklist of what there is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS, SHAPES, Drawn, draw, plural
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task


@part("tasks", "compared")
@dataclass(frozen=True, slots=True)
class Compared:
    """Endless pictures of a grid with shapes in some of its cells: how many more are there of one than of another?

    The checklist, ``meta["checklist"]``, asks how many there are of each of the two, and of all. The two are never
    alike; of the other shapes there are none to two each.

    Args:
        seed: >= 0.
        grid: cells on a side.
        pixels: on a side of a cell.
        most: of one of the two shapes, at most.

    Raises:
        UsageError: an option out of range, a grid too small for so many shapes, or Pillow is not installed.
    """

    seed: int = 0
    grid: int = 4
    pixels: int = 16
    most: int = 4

    def __post_init__(self) -> None:
        check_seed("tasks 'compared'", self.seed)
        if not 2 <= self.grid <= 9 or not 8 <= self.pixels <= 256 or self.most < 1:
            raise UsageError(
                f"tasks 'compared': grid {self.grid} must be 2 to 9, pixels {self.pixels} 8 to 256, and most "
                f"{self.most} at least 1"
            )
        if 2 * self.most - 1 > self.grid**2:
            raise UsageError(
                f"tasks 'compared': {2 * self.most - 1} shapes do not fit into {self.grid} x {self.grid} cells"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        names = [str(shape) for shape in rng.permutation(SHAPES)]
        more = int(rng.integers(1, self.most + 1))
        counts = [more, int(rng.integers(more)), *(int(n) for n in rng.integers(3, size=len(SHAPES) - 2))]
        cells = [divmod(int(i), self.grid) for i in rng.permutation(self.grid**2)]
        wanted = [shape for shape, count in zip(names, counts, strict=True) for _ in range(count)]
        colours = [str(colour) for colour in rng.choice(list(COLOURS), len(wanted))]
        # Where there is no room the shapes that are not asked about are fewer.
        drawn = [Drawn(s, c, *cell) for s, c, cell in zip(wanted, colours, cells, strict=False)]
        first, second = (plural(name) for name in names[:2])
        checklist = [
            {"question": f"How many {first}?", "answer": str(counts[0])},
            {"question": f"How many {second}?", "answer": str(counts[1])},
            {"question": "How many shapes?", "answer": str(len(drawn))},
        ]
        text = f"{MARK}How many more {first} than {second} are there?"
        message: Message = {
            "role": "user",
            "content": text,
            "images": (Picture.of(draw(drawn, self.grid, self.pixels)),),
        }
        return Task(
            id=f"compared/{self.seed}/{index}",
            prompt=(message,),
            reference=str(counts[0] - counts[1]),
            solution=f"{counts[0]} - {counts[1]}\n{counts[0] - counts[1]}",
            meta={"source": "compared", "checklist": checklist, "difficulty": len(drawn)},
        )
