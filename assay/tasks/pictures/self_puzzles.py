"""Puzzles that a picture asks about itself: which patch is missing, how it was turned, where its tiles go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.pictures import cuts
from assay.tasks.pictures.unlabelled import Pixels, Unlabelled
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task

Puzzle = Literal["patch_fit", "rotation", "jigsaw"]
LETTERS = "ABCDEFGH"
ANGLES = (0, 90, 180, 270)
FORM = "\nThink within <think> and </think>, then give the answer alone within <answer> and </answer>."
ALIKE = 20
"""Pictures that are tried for a puzzle, where those before it have parts that look alike."""


@part("tasks", "self_puzzles")
@dataclass(frozen=True, slots=True)
class SelfPuzzles:
    """Endless puzzles made of unlabelled pictures, each of one kind:

    - ``patch_fit``: a square of a quarter of the side is covered in grey; which of some patches was there? The others
      are the patch mirrored, turned or recoloured, and squares of similar colour from elsewhere. The answer is a
      letter.
    - ``rotation``: by how many degrees was it turned, clockwise or counter-clockwise: 0, 90, 180 or 270.
    - ``jigsaw``: tiles in another order; the answer has for each tile, in the order in which they are shown, the number
      of its place in the picture, counted in reading order from 1. Any order is as likely, the right one too.

    A picture whose turns, tiles or patches look alike is passed over.

    Args:
        seed: >= 0.
        puzzles: kinds, one of which is drawn for each picture.
        folder: with pictures; scenes are drawn without one.
        pixels: on a side of a picture.
        decoys: numbers of wrong patches, one of which is drawn for each puzzle.
        grid: rows and columns of tiles, at most; at least two tiles.
        form: what is asked of the response, behind the question; solutions are the answer alone where nothing is.

    Raises:
        UsageError: an option out of range, a folder without pictures or one in which all look alike, or no Pillow.

    Source: Puzzle Curriculum GRPO (arXiv 2512.14944), which does not tell sizes of patches.
    """

    seed: int = 0
    puzzles: tuple[Puzzle, ...] = ("patch_fit", "rotation", "jigsaw")
    folder: str | None = None
    pixels: int = 224
    decoys: tuple[int, ...] = (3, 5, 7)
    grid: int = 3
    form: str = FORM
    _pictures: Unlabelled = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_seed("tasks 'self_puzzles'", self.seed)
        if not self.puzzles or not 12 <= self.pixels <= 2048:
            raise UsageError(
                f"tasks 'self_puzzles': puzzles must name some of patch_fit, rotation, jigsaw, and pixels "
                f"{self.pixels} must be 12 to 2048"
            )
        if not self.decoys or not all(1 <= n <= 7 for n in self.decoys) or not 2 <= self.grid <= 3:
            raise UsageError(
                f"tasks 'self_puzzles': decoys {list(self.decoys)} must be 1 to 7 each, and grid {self.grid} 2 or 3"
            )
        object.__setattr__(self, "_pictures", Unlabelled(self.seed, self.pixels, self.folder))
        _ = self._pictures.files

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None), 1)
        puzzle = self.puzzles[int(rng.integers(len(self.puzzles)))]
        make = {"patch_fit": self._patch_fit, "rotation": self._rotation, "jigsaw": self._jigsaw}[puzzle]
        for k in range(ALIKE):
            made = make(self._pictures[index + k], rng)
            if made is not None:
                break
        else:
            raise UsageError(
                f"tasks 'self_puzzles': {ALIKE} pictures from number {index} on have parts that look alike, of "
                f"which no {puzzle} can be made; take out pictures of one colour"
            )
        question, shown, kind, reference, options = made
        answer = reference if isinstance(reference, str) else ", ".join(map(str, reference))
        message: Message = {
            "role": "user",
            "content": f"{question}{self.form}",
            "images": tuple(Picture.of(np.ascontiguousarray(one)) for one in shown),
        }
        solution = f"<think></think><answer>{answer}</answer>" if self.form else answer
        return Task(
            id=f"self_puzzles/{self.seed}/{index}",
            prompt=(message,),
            reference=reference,
            kind=kind,
            solution=solution,
            meta={"source": "self_puzzles", "puzzle": puzzle, "category": puzzle} | options,
        )

    def _patch_fit(self, image: Pixels, rng: np.random.Generator) -> _Made | None:
        side, count = self.pixels // 4, int(rng.choice(self.decoys))
        corner = tuple(int(v) for v in rng.integers(0, self.pixels - side + 1, 2))
        pieces = [np.ascontiguousarray(cuts.patch(image, corner, side))]
        sources = [cuts.changed(pieces[0], rng), cuts.elsewhere(image, corner, side, rng)]
        while len(pieces) <= count and sources:
            source = sources[int(rng.integers(len(sources)))]
            piece = next(source, None)
            if piece is None:
                sources.remove(source)
            elif cuts.different([*pieces, piece]):
                pieces.append(piece)
        if len(pieces) <= count:
            return None
        order = rng.permutation(len(pieces))
        letters = LETTERS[: len(pieces)]
        lines = "".join(f"\n{letter}. {MARK}" for letter in letters)
        question = f"{MARK}A square of this picture is covered in grey. Which of these patches was there?{lines}"
        shown = [cuts.covered(image, corner, side), *(pieces[i] for i in order)]
        answer = letters[int(np.flatnonzero(order == 0)[0])]
        return question, shown, "choice", answer, {"options": {x: f"patch {x}" for x in letters}}

    def _rotation(self, image: Pixels, rng: np.random.Generator) -> _Made | None:
        if not cuts.different([cuts.turned(image, a, True) for a in ANGLES]):
            return None
        angle, clockwise = int(rng.choice(ANGLES)), bool(rng.integers(2))
        way = "clockwise" if clockwise else "counter-clockwise"
        question = f"{MARK}By how many degrees was this picture turned {way}: 0, 90, 180 or 270?"
        options = {"options": {str(a): f"{a} degrees" for a in ANGLES}}
        return question, [cuts.turned(image, angle, clockwise)], "choice", str(angle), options

    def _jigsaw(self, image: Pixels, rng: np.random.Generator) -> _Made | None:
        sizes = [(r, c) for r in range(1, self.grid + 1) for c in range(1, self.grid + 1) if r * c > 1]
        rows, columns = sizes[int(rng.integers(len(sizes)))]
        pieces = cuts.tiles(image, rows, columns)
        if not cuts.different(pieces):
            return None
        order = [int(i) for i in rng.permutation(len(pieces))]
        question = (
            f"{MARK}A picture was cut into {rows} x {columns} tiles, which were put in another order. Its places are "
            f"numbered 1 to {len(pieces)}, row by row from the upper left. For each tile, in the order in which they "
            "are shown, give the number of the place where it belongs, separated by commas."
        )
        return question, [cuts.laid([pieces[i] for i in order], columns)], "permutation", [i + 1 for i in order], {}


_Made = tuple[str, list[Pixels], str, str | list[int], dict[str, Any]]
"""A question, the pictures in it, the kind, the reference, and the options if there are any."""
