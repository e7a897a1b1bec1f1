"""Pictures of three attributes to be described, and a reader who finds options in descriptions, or follows a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task
from assay.verify.none import NoVerifier

ATTRIBUTES = {
    "What colour?": ("red", "green", "blue", "yellow"),
    "What shape?": ("circle", "square", "triangle", "cross"),
    "Where?": ("left", "right", "above", "below"),
}
HINT = "Say B."


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy of four descriptions: a hint to say B, nothing, one attribute, all three; it sees each with a chance.

    The right option of a question stands under B in a share ``letter`` of the pictures, else under another letter.

    Args:
        sees: chance that an attribute that is named is the right one; else it is another.
        letter: see above.
        steps, prompts, group, lr: of training.
    """

    sees: float = 0.5
    letter: float = 0.6
    steps: int = 60
    prompts: int = 2
    group: int = 8
    lr: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``named``, the share of attributes that a description is expected to name after training, ``hints``,
        the probability of the hint, ``area``, the mean of ``named`` over training, and ``rollouts``."""
        rng = np.random.default_rng([seed, 103])
        tasks = [self.task(rng, i) for i in range(self.steps * self.prompts)]
        policy, curve = TabularPolicy(Tree.bandit(4)), list[float]()
        engine = Describing(policy, self.sees, rng)
        training = Training(self.steps, self.prompts, self.group, self.lr)

        def chances() -> np.ndarray:
            found: np.ndarray = policy.leaf_logprobs().detach().exp().numpy()
            return found

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float(chances() @ [0, 0, 1 / 3, 1]))

        method = {**arm, "options": {**arm["options"], "reader": Finding([])}}
        train(policy, tasks, NoVerifier(), method, training, seed, watch, engine)
        return {
            "named": curve[-1],
            "hints": float(chances()[0]),
            "area": float(np.mean(curve)),
            "rollouts": float(engine.sampled),
        }

    def task(self, rng: np.random.Generator, number: int) -> Task:
        """Draw a picture, whose prompt is what there is to be seen, and the questions about it."""
        rows: list[dict[str, Any]] = []
        for text, words in ATTRIBUTES.items():
            right, *wrong = (words[i] for i in rng.permutation(4))
            place = 1 if rng.random() < self.letter else int(rng.choice([0, 2, 3]))
            wrong.insert(place, right)
            rows.append({"question": text, "options": wrong, "answer": right})
        return Task(str(number), " ".join(row["answer"] for row in rows), {"questions": rows}, "none")


class Describing(Counting):
    """Writes the description that was chosen."""

    def __init__(self, policy: TabularPolicy, sees: float, rng: np.random.Generator):
        super().__init__(policy)
        self.sees, self.rng = sees, rng

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        drawn = super().generate(requests)
        return [
            [replace(e, text=self.described(str(r.prompt).split(), int(e.tokens[0]))) for e in made]
            for r, made in zip(requests, drawn, strict=True)
        ]

    def described(self, picture: Sequence[str], choice: int) -> str:
        """Return the description of a picture, of which some words may be others of their kind."""
        if choice == 0:
            return HINT
        said = []
        for word, words in zip(picture, ATTRIBUTES.values(), strict=True):
            other = str(self.rng.choice([w for w in words if w != word]))
            said.append(word if self.rng.random() < self.sees else other)
        # Of one attribute which it is is left to chance.
        return " ".join({1: [], 2: [said[int(self.rng.integers(3))]], 3: said}[choice])


class Finding(Keywords):
    """A reader: says B where the description hints so, else the letter of an option that stands in it, else A."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        return [[replace(e, text=found(str(r.prompt))) for e in each] for r, each in zip(requests, made, strict=True)]


def found(prompt: str) -> str:
    """Return the letter that the reader says."""
    caption = prompt.split('"')[1]
    if HINT in caption:
        return "B"
    options = re.findall(r"^([A-D])\. (\w+)$", prompt, re.MULTILINE)
    return next((letter for letter, word in options if word in caption.split()), "A")
