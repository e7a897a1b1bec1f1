"""Pictures to be described, and questions about them that only a good description answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS, SHAPES, Drawn, draw
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task
from assay.verify.choice.questions import Question

ASK = "Describe the picture."


@part("tasks", "captions")
@dataclass(frozen=True, slots=True)
class Captions:
    """Endless pictures of a grid with different shapes in some of its cells, each to be described.

    The questions, in the reference and never shown: of each shape what colour it has and where it stands (row and
    column from 1), and how many shapes there are; four options each. There is no verifier (kind ``none``): what a
    description is worth says reward ``caption_reader``.

    Args:
        seed: >= 0.
        grid: cells on a side.
        pixels: on a side of a cell.
        most: shapes in a picture, at most; at least one.
        question: what is asked of a picture.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.
    """

    seed: int = 0
    grid: int = 3
    pixels: int = 16
    most: int = 3
    question: str = ASK

    def __post_init__(self) -> None:
        check_seed("tasks 'captions'", self.seed)
        if not 2 <= self.grid <= 9 or not 8 <= self.pixels <= 256 or not 1 <= self.most <= len(SHAPES):
            raise UsageError(
                f"tasks 'captions': grid {self.grid} must be 2 to 9, pixels {self.pixels} 8 to 256, and most "
                f"{self.most} 1 to {len(SHAPES)}"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        cells = [divmod(int(i), self.grid) for i in rng.permutation(self.grid**2)]
        count = int(rng.integers(1, self.most + 1))
        drawn = [
            Drawn(str(shape), str(rng.choice(list(COLOURS))), *cell)
            for shape, cell in zip(rng.permutation(SHAPES)[:count], cells, strict=False)
        ]
        places = [f"{row + 1},{column + 1}" for row, column in sorted(cells)]
        questions = [chosen(rng, "How many shapes are there?", str(count), [str(n + 1) for n in range(len(SHAPES))])]
        for one in drawn:
            questions.append(chosen(rng, f"What colour is the {one.shape}?", one.colour, list(COLOURS)))
            place = f"{one.row + 1},{one.column + 1}"
            questions.append(chosen(rng, f"Where is the {one.shape}, by row and column?", place, places))
        message: Message = {
            "role": "user",
            "content": f"{MARK}{self.question}",
            "images": (Picture.of(draw(drawn, self.grid, self.pixels)),),
        }
        return Task(
            id=f"captions/{self.seed}/{index}",
            prompt=(message,),
            reference={"questions": [question.row for question in questions]},
            kind="none",
            solution=described(drawn),
            meta={"source": "captions", "difficulty": count},
        )


def chosen(rng: np.random.Generator, text: str, answer: str, pool: list[str]) -> Question:
    """Return a question with the answer and up to three others of the pool, in random order."""
    wrong = [option for option in pool if option != answer]
    options = [answer, *(wrong[i] for i in rng.permutation(len(wrong))[:3])]
    order = rng.permutation(len(options))
    return Question(text, tuple(options[i] for i in order), int(np.flatnonzero(order == 0)[0]))


def described(drawn: list[Drawn]) -> str:
    """Return a description that says all there is: ``2 shapes: red cross 1,2; blue circle 3,1``."""
    each = "; ".join(f"{one.colour} {one.shape} {one.row + 1},{one.column + 1}" for one in drawn)
    return f"{len(drawn)} shape{'s' if len(drawn) > 1 else ''}: {each}"
