"""People who are shown and described, of whom one is asked about who may not be among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.registry import part
from assay.tasks.pictures.shapes import COLOURS, SHAPES, Drawn, draw
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task

TYPES = ("localize", "verify", "text_qa")
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gwen", "Hugo")
JOBS = ("baker", "pilot", "nurse", "judge", "farmer", "tailor", "diver", "miner")
CANNOT = "I cannot determine that from the provided context."
GRID = 2
"""Cells on a side of a picture: where a person stands differs from picture to picture."""


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    job: str
    shape: str
    colour: str

    def seen(self, rng: np.random.Generator, pixels: int) -> Picture:
        """Return another picture of the person."""
        row, column = (int(v) for v in rng.integers(GRID, size=2))
        return Picture.of(draw([Drawn(self.shape, self.colour, row, column)], GRID, pixels))


@part("tasks", "personas")
@dataclass(frozen=True, slots=True)
class Personas:
    """Endless questions about people, who are coloured shapes that stand anywhere in their pictures:

    - ``localize``: which of some contexts, a picture and a sentence each, shows who is in another picture, or none;
    - ``verify``: are two pictures of the same person;
    - ``text_qa``: what work does who is in the picture do, as the contexts say; or that cannot be determined.

    Args:
        seed: >= 0.
        shares: of the three types, in proportion.
        absent: questions whose person is not there (of ``verify``: not the same) for one whose is.
        contexts: people in context, at most; at least two.
        pixels: on a side of half a picture.

    Raises:
        UsageError: an option out of range, or Pillow is not installed.

    Source: the mix of Omni-Persona (arXiv 2605.09996), whose people are photographs, voices and stories.
    """

    seed: int = 0
    shares: tuple[float, float, float] = (30.0, 30.0, 40.0)
    absent: float = 0.6
    contexts: int = 4
    pixels: int = 16

    def __post_init__(self) -> None:
        check_seed("tasks 'personas'", self.seed)
        if min(self.shares) < 0 or sum(self.shares) <= 0 or self.absent < 0:
            raise UsageError(
                f"tasks 'personas': shares {list(self.shares)} must be at least 0, one of them above, and absent "
                f"{self.absent:g} at least 0"
            )
        if not 2 <= self.contexts <= len(NAMES) - 1 or not 8 <= self.pixels <= 256:
            raise UsageError(
                f"tasks 'personas': contexts {self.contexts} must be 2 to {len(NAMES) - 1}, and pixels {self.pixels} 8 "
                "to 256"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        shares = np.asarray(self.shares)
        kind = str(rng.choice(TYPES, p=shares / shares.sum()))
        there = bool(rng.random() < 1 / (1 + self.absent))
        looks = [(s, c) for s in SHAPES for c in COLOURS]
        count = int(rng.integers(2, self.contexts + 1))
        people = [
            _Person(NAMES[n], JOBS[j], *looks[k])
            for n, j, k in zip(rng.permutation(8), rng.permutation(8), rng.permutation(16), strict=False)
        ][: count + 1]
        make = self._verify if kind == "verify" else self._among
        text, shown, answer = make(rng, kind, people, there)
        said = {"localize": f"\\boxed{{{answer}}}", "verify": str(answer), "text_qa": str(answer or CANNOT)}[kind]
        reference = {"type": kind, "answer": answer} | ({"contexts": count} if kind == "localize" else {})
        message: Message = {"role": "user", "content": text, "images": tuple(shown)}
        return Task(
            id=f"personas/{self.seed}/{index}",
            prompt=(message,),
            reference=reference,
            kind="persona",
            solution=said,
            meta={"source": "personas", "category": kind, "there": there, "difficulty": len(shown)},
        )

    def _verify(
        self, rng: np.random.Generator, kind: str, people: list[_Person], there: bool
    ) -> tuple[str, list[Picture], Any]:
        other = people[0] if there else people[1]
        shown = [people[0].seen(rng, self.pixels), other.seen(rng, self.pixels)]
        return f"{MARK}\n{MARK}\nAre these the same person? Answer yes or no.", shown, "yes" if there else "no"

    def _among(
        self, rng: np.random.Generator, kind: str, people: list[_Person], there: bool
    ) -> tuple[str, list[Picture], Any]:
        *known, stranger = people
        place = int(rng.integers(len(known)))
        person = known[place] if there else stranger
        lines = [f"{i} {MARK} {one.name} is a {one.job}." for i, one in enumerate(known)]
        shown = [one.seen(rng, self.pixels) for one in (*known, person)]
        if kind == "localize":
            asked = f"Which context shows this person? Say {len(known)} if none does, boxed."
            return "\n".join([*lines, f"{MARK}{asked}"]), shown, place if there else len(known)
        asked = f"What work does this person do? If that is not told, say: {CANNOT}"
        return "\n".join([*lines, f"{MARK}{asked}"]), shown, person.job if there else None
