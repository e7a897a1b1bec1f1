"""Videos, as pictures with the time of each before it, and questions when something is to be seen in them."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS, SHAPES, Drawn, draw
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task

QUESTION = "When is the {what} there? Say: it happens in START - END seconds."
CHOICE = "When is the {what} there?"


@dataclass(frozen=True, slots=True)
class Shown:
    """A shape that is there in the frames ``[first, last]`` of a video, counted from 0."""

    drawn: Drawn
    first: int
    last: int


@part("tasks", "videos")
@dataclass(frozen=True, slots=True)
class Videos:
    """Endless videos in which coloured shapes come and go, each with the question when one of them is there.

    A frame is a picture, and its time stands in words before it: ``0.0s<image>1.0s<image>...``. Frame k shows what is
    there from k ``every`` to (k + 1) ``every`` seconds. What is asked for is there without a break, for one frame up to
    all but one; the others, none up to ``others``, each in a cell of its own, differ from it in shape or colour.
    ``meta`` has the ``duration`` in seconds and, as ``difficulty``, the number of others.

    Args:
        seed: >= 0.
        frames: numbers of frames, one of which is drawn for each video; at least two each.
        every: seconds from one frame to the next.
        others: shapes beside the one that is asked for, at most; fewer than cells.
        grid: cells on a side of a frame.
        pixels: on a side of a cell.
        question: with ``{what}`` for the shape.
        options: 0, or how many spans are offered, one of which is right and to be chosen by its letter; at most as
            many as there are. The question is then "When is it there?" unless another is given.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.

    Source: the form of prompts and answers is that of TimeLens (arXiv 2512.14698), which asks about real videos.
    """

    seed: int = 0
    frames: tuple[int, ...] = (4, 6, 8)
    every: float = 1.0
    others: int = 2
    grid: int = 2
    pixels: int = 16
    question: str = QUESTION
    options: int = 0

    def __post_init__(self) -> None:
        check_seed("tasks 'videos'", self.seed)
        if not 1 <= self.grid <= 9 or not 8 <= self.pixels <= 256:
            raise UsageError(
                f"tasks 'videos': grid {self.grid} must be 1 to 9, and pixels {self.pixels} must be 8 to 256"
            )
        if not self.frames or min(self.frames) < 2 or not self.every > 0:
            raise UsageError(
                f"tasks 'videos': frames {list(self.frames)} must be 2 or more each, and every {self.every:g} above 0"
            )
        if not 0 <= self.others < self.grid**2:
            raise UsageError(
                f"tasks 'videos': others {self.others} must be 0 or more and fewer than the {self.grid**2} cells"
            )
        most = min(len(_spans(min(self.frames))), len(ascii_uppercase))
        if self.options and not 2 <= self.options <= most:
            raise UsageError(
                f"tasks 'videos': options {self.options} must be 0, or 2 to {most}, as many as there are spans in "
                f"{min(self.frames)} frames and letters"
            )
        if "{what}" not in self.question:
            raise UsageError("tasks 'videos': the question has no {what} for the shape that it asks for")

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        frames = int(rng.choice(self.frames))
        shown = self._shown(rng, frames)
        asked = shown[0]
        pictures = tuple(
            Picture.of(draw([s.drawn for s in shown if s.first <= k <= s.last], self.grid, self.pixels))
            for k in range(frames)
        )
        start, end = asked.first * self.every, (asked.last + 1) * self.every
        seen = "".join(f"{k * self.every:.1f}s{MARK}" for k in range(frames))
        question = CHOICE if self.options and self.question == QUESTION else self.question
        what = question.replace("{what}", f"{asked.drawn.colour} {asked.drawn.shape}")
        offered = self._offered(rng, frames, (asked.first, asked.last))
        lines = [f"{a * self.every:.1f} - {(b + 1) * self.every:.1f} seconds" for a, b in offered]
        what += "".join(f"\n{label}. {line}" for label, line in zip(ascii_uppercase, lines, strict=False))
        letter = ascii_uppercase[offered.index((asked.first, asked.last))] if offered else ""
        message: Message = {"role": "user", "content": f"{seen}{what}", "images": pictures}
        happens = f"It happens in {start:.1f} - {end:.1f} seconds."
        return Task(
            id=f"videos/{self.seed}/{index}",
            prompt=(message,),
            reference=letter or [start, end],
            kind="choice" if letter else "interval",
            solution=f"<think>{start:.1f}</think><answer>{letter}</answer>" if letter else happens,
            meta={"source": "videos", "duration": frames * self.every, "difficulty": len(shown) - 1},
        )

    def _offered(self, rng: np.random.Generator, frames: int, right: tuple[int, int]) -> list[tuple[int, int]]:
        """Draw the spans that are offered, the right one among them, in a random order."""
        if not self.options:
            return []
        others = [span for span in _spans(frames) if span != right]
        drawn = [others[i] for i in rng.choice(len(others), self.options - 1, replace=False)]
        return [[right, *drawn][i] for i in rng.permutation(self.options)]

    def _shown(self, rng: np.random.Generator, frames: int) -> list[Shown]:
        """Draw what comes and goes, first what is asked for."""
        kinds = [(shape, colour) for shape in SHAPES for colour in COLOURS]
        cells = rng.permutation(self.grid**2)
        count = 1 + int(rng.integers(self.others + 1))
        shown: list[Shown] = []
        for cell in cells[:count]:
            shape, colour = kinds.pop(int(rng.integers(len(kinds)))) if not shown else kinds[rng.integers(len(kinds))]
            long = int(rng.integers(1, frames))
            first = int(rng.integers(frames - long + 1))
            shown.append(Shown(Drawn(shape, colour, *divmod(int(cell), self.grid)), first, first + long - 1))
        return shown


def _spans(frames: int) -> list[tuple[int, int]]:
    """Return the first and last frame of what may be asked for: of one frame up to all but one."""
    return [(a, b) for a in range(frames) for b in range(a, frames) if b - a < frames - 1]
