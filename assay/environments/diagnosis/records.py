"""Patients whose disease follows from criteria, one in each section of a record that is shown in clinical order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.naming import made_up
from assay.tasks.seeded import check_index, generator
from assay.types import Task

Style = Literal["words", "compact"]

SIGNS: dict[str, tuple[str, ...]] = {
    "complaint": (
        *("fever", "night sweats", "chest pain", "breathlessness", "headache"),
        *("joint pain", "palpitations", "blurred vision", "vomiting", "ankle swelling"),
    ),
    "history": (
        *("smoking", "a recent long flight", "contact with birds", "work with asbestos", "a tick bite"),
        *("an organ transplant", "diabetes", "chemotherapy", "alcohol misuse", "a prosthetic valve"),
    ),
    "examination": (
        *("a heart murmur", "crackles", "an enlarged spleen", "a stiff neck", "jaundice"),
        *("a butterfly rash", "absent reflexes", "finger clubbing", "a goitre", "a palpable thrill"),
    ),
    "tests": (
        *("low sodium", "high troponin", "positive cultures", "low platelets", "high calcium"),
        *("a widened QRS", "a cavity on the radiograph", "raised lactate", "low complement", "oligoclonal bands"),
    ),
}
"""What may be found, by the section it stands in; the sections in clinical order."""
SECTIONS = tuple(SIGNS)
HOW = (
    "A patient has one of the diseases below, each with its criteria. The record is shown piece by piece. After each "
    "piece think, and end with one line: the diseases it may be, the likeliest first, a bar, and what in the record "
    "speaks for the first, such as: {first} > {second} | {sign}"
)


@dataclass(frozen=True, slots=True)
class Records:
    """Endless patients; arguments as of :class:`assay.environments.diagnosis.environment.Diagnosis`.

    A disease has one criterion in each section. A record shows in each section the one of the patient's disease among
    incidental findings. For every other disease there is a section whose criterion the record does not show, so that
    the whole of it leaves one disease; any part may leave more.

    ``meta``: ``disease``; ``criteria``, of each disease by its name; ``pieces``, the findings of each section.
    """

    seed: int
    diseases: int
    sections: int
    signs: int
    extra: int
    style: Style

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index, 222)
        known = [self._signs(section) for section in SECTIONS[: self.sections]]
        right = tuple(int(rng.integers(self.signs)) for _ in known)
        others = self._others(right, rng)
        pieces = [[known[k][s] for s in found] for k, found in enumerate(self._found(right, others, rng))]
        every = [right, *others]
        order = rng.permutation(len(every)).tolist()
        names = self._names(rng)
        criteria = {
            name: [known[k][sign] for k, sign in enumerate(every[i])] for name, i in zip(names, order, strict=True)
        }
        disease = names[order.index(0)]
        return Task(
            id=f"diagnosis/{self.seed}/{self.style}/{self.diseases}x{self.sections}x{self.signs}+{self.extra}/{index}",
            prompt=self._prompt(criteria),
            # What is shown later tells patients apart whose prompts are alike.
            reference={"disease": disease, "record": pieces},
            kind="none",
            meta={"disease": disease, "criteria": criteria, "pieces": pieces},
        )

    def _signs(self, section: str) -> Sequence[str]:
        if self.style == "compact":
            return [f"{section[0]}{k}" for k in range(self.signs)]
        return SIGNS[section][: self.signs]

    def _names(self, rng: np.random.Generator) -> list[str]:
        if self.style == "compact":
            return [chr(ord("A") + k) for k in range(self.diseases)]
        return [f"{name} disease" for name in made_up(rng, self.diseases)]

    def _others(self, right: tuple[int, ...], rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Return the criteria of the other diseases: those of the right one, about half of them drawn anew."""
        seen = {right}
        while len(seen) < self.diseases:
            redrawn = rng.random(len(right)) < 0.5
            draws = rng.integers(self.signs, size=len(right)).tolist()
            seen.add(tuple(d if r else s for s, d, r in zip(right, draws, redrawn, strict=True)))
        return sorted(seen - {right})

    def _found(
        self, right: tuple[int, ...], others: Sequence[tuple[int, ...]], rng: np.random.Generator
    ) -> list[list[int]]:
        """Return what each section shows, in an order that tells nothing."""
        absent: list[set[int]] = [set() for _ in right]
        for other in others:
            k = int(rng.choice([k for k, sign in enumerate(other) if sign != right[k]]))
            absent[k].add(other[k])
        out = []
        for sign, never in zip(right, absent, strict=True):
            free = [s for s in range(self.signs) if s != sign and s not in never]
            shown = [sign, *rng.permutation(free)[: self.extra].tolist()]
            out.append([int(s) for s in rng.permutation(shown)])
        return out

    def _prompt(self, criteria: Mapping[str, Sequence[str]]) -> str:
        if self.style == "compact":
            return "\n".join(f"{name}:{','.join(signs)}" for name, signs in criteria.items())
        told = "\n".join(f"- {name}: {'; '.join(signs)}" for name, signs in criteria.items())
        first, second, *_ = criteria
        return f"{HOW.format(first=first, second=second, sign=criteria[first][0])}\n\n{told}"


def piece(section: int, found: Sequence[str], style: Style) -> str:
    """Return how a piece of the record is shown."""
    return ",".join(found) if style == "compact" else f"{SECTIONS[section].capitalize()}: {', '.join(found)}."


def fits(criteria: Mapping[str, Sequence[str]], shown: Sequence[str]) -> dict[str, int]:
    """Return how many criteria of each disease have been shown."""
    return {name: sum(sign in shown for sign in signs) for name, signs in criteria.items()}
