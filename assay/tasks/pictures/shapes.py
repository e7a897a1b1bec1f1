"""Pictures of coloured shapes, and questions that only who sees them can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture, canvas
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task

SHAPES = ("circle", "square", "triangle", "cross")
COLOURS = {"red": (220, 30, 30), "green": (20, 160, 40), "blue": (40, 60, 220), "yellow": (235, 200, 20)}
Question = Literal["colour", "count", "place"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A shape in a picture: where it stands, row and column of the grid from 0."""

    shape: str
    colour: str
    row: int
    column: int


@part("tasks", "shapes")
@dataclass(frozen=True, slots=True)
class Shapes:
    """Endless pictures of a grid with a shape in some of its cells, each with one question:

    - ``colour``: ``What colour is the cross?``, of a shape that is there once;
    - ``count``: ``How many circles are red?``, none up to ``most``, each number as often;
    - ``place``: ``Where is the blue square?``, answered by row and column from 1, as ``2,3``.

    Args:
        seed: >= 0.
        grid: cells on a side.
        pixels: on a side of a cell.
        most: shapes in a picture, at most; at least one.
        questions: kinds of question, one of which is drawn for each picture.
        choice: each with up to four options, A, B, C and D, of which one is right.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.
    """

    seed: int = 0
    grid: int = 3
    pixels: int = 16
    most: int = 4
    questions: tuple[Question, ...] = ("colour", "count", "place")
    choice: bool = False

    def __post_init__(self) -> None:
        check_seed("tasks 'shapes'", self.seed)
        if not 1 <= self.grid <= 9 or not 8 <= self.pixels <= 256:
            raise UsageError(
                f"tasks 'shapes': grid {self.grid} must be 1 to 9, and pixels {self.pixels} must be 8 to 256"
            )
        if not 1 <= self.most <= self.grid**2:
            raise UsageError(f"tasks 'shapes': most {self.most} must be 1 to the {self.grid**2} cells of the grid")
        if not self.questions:
            raise UsageError("tasks 'shapes': questions is empty; name some of colour, count, place")
        if self.choice and self.grid == 1:
            raise UsageError("tasks 'shapes': in a grid of 1 cell there is no choice of places; take 2 or more")

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        question = self.questions[int(rng.integers(len(self.questions)))]
        shape, colour = str(rng.choice(SHAPES)), str(rng.choice(list(COLOURS)))
        cells = [(int(cell) // self.grid, int(cell) % self.grid) for cell in rng.permutation(self.grid**2)]
        count = int(rng.integers(1, self.most + 1))
        if question == "count":
            named = int(rng.integers(self.most + 1))
            count = max(count, named)
            asked, answer = f"How many {plural(shape)} are {colour}?", str(named)
        else:
            named = 1
            row, column = cells[0]
            asked, answer = f"What colour is the {shape}?", colour
            if question == "place":
                asked, answer = f"Where is the {colour} {shape}?", f"{row + 1},{column + 1}"
        drawn = [Drawn(shape, colour, *cell) for cell in cells[:named]]
        drawn += [Drawn(*self._other(rng, shape, colour, question), *cell) for cell in cells[named:count]]
        picture = Picture.of(draw(drawn, self.grid, self.pixels))
        reference = solution = answer
        if self.choice:
            options = self._options(rng, question, answer)
            reference = "ABCD"[options.index(answer)]
            asked += "".join(f"\n{label}. {text}" for label, text in zip("ABCD", options, strict=False))
            solution = f"<think>{answer}</think><answer>{reference}</answer>"
        message: Message = {"role": "user", "content": f"{MARK}{asked}", "images": (picture,)}
        return Task(
            id=f"shapes/{self.seed}/{index}",
            prompt=(message,),
            reference=reference,
            kind="choice" if self.choice else "exact",
            solution=solution,
            meta={"source": "shapes", "question": question, "difficulty": count},
        )

    def _options(self, rng: np.random.Generator, question: Question, answer: str) -> list[str]:
        """Draw up to three answers that are wrong, and put them and the right one in random order."""
        numbers, sides = range(self.most + 1), range(1, self.grid + 1)
        all_of = {"colour": list(COLOURS), "count": [str(n) for n in numbers]}
        pool = all_of.get(question) or [f"{r},{c}" for r in sides for c in sides]
        wrong = [text for text in pool if text != answer]
        options = [answer, *(wrong[i] for i in rng.permutation(len(wrong))[:3])]
        return [options[i] for i in rng.permutation(len(options))]

    def _other(self, rng: np.random.Generator, shape: str, colour: str, question: Question) -> tuple[str, str]:
        """Draw a shape and a colour that leave the question's answer as it is."""
        while True:
            found = str(rng.choice(SHAPES)), str(rng.choice(list(COLOURS)))
            if found[0] != shape or (question != "colour" and found[1] != colour):
                return found


def draw(shapes: Sequence[Drawn], grid: int, pixels: int) -> Any:
    """Return the picture, a ``PIL.Image`` of ``grid * pixels`` pixels on a side."""
    image, pen = canvas(grid * pixels, grid * pixels)
    for one in shapes:
        left, top, edge = one.column * pixels, one.row * pixels, max(1, pixels // 8)
        x0, y0, x1, y1 = left + edge, top + edge, left + pixels - 1 - edge, top + pixels - 1 - edge
        fill = COLOURS[one.colour]
        if one.shape == "circle":
            pen.ellipse((x0, y0, x1, y1), fill)
        elif one.shape == "square":
            pen.rectangle((x0, y0, x1, y1), fill)
        elif one.shape == "triangle":
            pen.polygon([(x0, y1), (x1, y1), ((x0 + x1) // 2, y0)], fill)
        else:
            third = (x1 - x0) // 3
            pen.rectangle((x0 + third, y0, x1 - third, y1), fill)
            pen.rectangle((x0, y0 + third, x1, y1 - third), fill)
    return image


def plural(shape: str) -> str:
    """Return the name of several of a shape."""
    return f"{shape}es" if shape.endswith("s") else f"{shape}s"
