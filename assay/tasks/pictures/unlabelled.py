"""Pictures without labels, to be asked about themselves: those of a folder, or scenes that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from assay.errors import UsageError
from assay.media import Picture, canvas
from assay.tasks.seeded import generator

Pixels = UInt8[np.ndarray, "H W 3"]
ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"})


@dataclass(frozen=True)
class Unlabelled:
    """Square pictures by number, endless: a folder's files over and over, or one scene a number.

    Args:
        seed: of the scenes.
        pixels: on a side; of a file its middle square is scaled to that.
        folder: with pictures, also in folders within it; scenes are drawn without one.

    Raises:
        UsageError: no such folder, or none of its files is a picture; when read, a file that is none.
    """

    seed: int
    pixels: int
    folder: str | None = None

    @cached_property
    def files(self) -> list[Path]:
        """The folder's pictures, by name."""
        if self.folder is None:
            return []
        root = Path(self.folder).expanduser()
        found = sorted(path for path in root.rglob("*") if path.suffix.lower() in ENDINGS) if root.is_dir() else []
        if not found:
            raise UsageError(f"pictures: {root} is no folder with pictures ({', '.join(sorted(ENDINGS))})")
        return found

    def __getitem__(self, index: int) -> Pixels:
        if self.folder is None:
            return scene(generator(self.seed, index), self.pixels)
        image = Picture(self.files[index % len(self.files)]).open()
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        return np.asarray(image.crop((left, top, left + side, top + side)).resize((self.pixels, self.pixels)))


def scene(rng: np.random.Generator, side: int) -> Pixels:
    """Draw shapes of many colours and sizes on ground whose colour changes across it, ``(side, side, 3)``."""
    corners = rng.integers(0, 256, (2, 2, 3))
    x = np.linspace(0, 1, side)[:, None]
    edges = corners[0][None] * (1 - x[..., None]) + corners[1][None] * x[..., None]  # left and right, (side, 2, 3)
    ground = edges[:, :1] * (1 - x) + edges[:, 1:] * x
    image, pen = canvas(side, side)
    image.paste(Picture.of(ground.round().astype(np.uint8)).open())
    for _ in range(12):
        size = int(rng.integers(max(side // 12, 2), max(side // 3, 3)))
        left, top = (int(v) for v in rng.integers(-size // 2, side - size // 2, 2))
        box, colour = (left, top, left + size, top + int(size * rng.uniform(0.5, 1))), tuple(rng.integers(0, 256, 3))
        shape = (pen.ellipse, pen.rectangle)[int(rng.integers(2))]
        shape(box, tuple(int(c) for c in colour))
    return np.asarray(image)
