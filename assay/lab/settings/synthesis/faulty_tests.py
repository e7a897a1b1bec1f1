"""Programs, right and wrong, and generated tests of which some are wrong themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.papers.data.s039_evosyn import SeedProblem, evolve, fitness
from assay.tasks.making.rankings import COUNTED
from assay.types import Episode, Prompt

EDITS = (
    ("tests = [sum(column) for column in zip(*passed)]", "tests = [-sum(column) for column in zip(*passed)]"),
    (
        "tests = [sum(column) for column in zip(*passed)]",
        "tests = [sum(p for p, ok in zip(programs, c) if ok) - sum(p for p, ok in zip(programs, c) if not ok) "
        "for c in zip(*passed)]",
    ),
    (
        "tests = [sum(column) for column in zip(*passed)]",
        "tests = [sum(p * (2 * ok - 1) for p, ok in zip(programs, c)) / len(c) - abs(2 * sum(c) - len(c)) / len(c) "
        "for c in zip(*passed)]",
    ),
    (
        "tests = [sum(column) for column in zip(*passed)]",
        "tests = [sum(p for p, ok in zip(programs, c) if ok) / max(sum(c), 1) "
        "- sum(p for p, ok in zip(programs, c) if not ok) / max(len(c) - sum(c), 1) for c in zip(*passed)]",
    ),
    ("programs = [sum(row) for row in passed]", "programs = [sum(row) ** 2 for row in passed]"),
    ("programs = [sum(row) for row in passed]", "programs = [-sum(row) for row in passed]"),
    ("programs = [sum(row) for row in passed]", "programs = [sum(rows) for row in passed]"),
)
"""Changes that the model may propose, good ones, bad ones, and one that does not run."""


class Tinkerer:
    """An engine that replies a change drawn from :data:`EDITS`."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        out = []
        for request in requests:
            old, new = EDITS[int(np.random.default_rng(request.seed).integers(len(EDITS)))]
            text = f"<patch>\n<<<<<<< SEARCH\n    {old}\n=======\n    {new}\n>>>>>>> REPLACE\n</patch>"
            out.append([Episode(none, none, none > 0, None, text, "eos")])
        return out


@dataclass(frozen=True, slots=True)
class Setting:
    """Problems with ``programs`` programs, each right with probability ``right``, and ``tests`` tests.

    A sound test accepts right programs, and wrong ones with a chance of its own; a faulty one, of which there is a
    share ``faulty``, accepts each program with probability one half; ``lax`` of the sound ones accept all.
    An arm says for how many iterations a strategy is evolved, on as many problems as it is measured on.

    Args:
        problems, programs, tests: how many.
        right, faulty, lax: see above.
        ends: programs at both ends that have to be judged rightly.
    """

    problems: int = 30
    programs: int = 12
    tests: int = 10
    right: float = 0.5
    faulty: float = 0.3
    lax: float = 0.3
    ends: int = 2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the fitness of the strategy on the problems that it was evolved on (``seen``), and on ``held out``
        ones."""
        seen, other = (self.made(np.random.default_rng([seed, 37, k])) for k in range(2))
        source = COUNTED
        if arm["iterations"]:
            source = evolve(seen, Tinkerer(), int(arm["iterations"]), ends=self.ends, seed=seed).best.source
        found = [fitness(source, problems, self.ends) for problems in (seen, other)]
        return {"seen": float(found[0]), "held out": float(found[1])}

    def made(self, rng: np.random.Generator) -> list[SeedProblem]:
        """Return problems, each with a right program and a wrong one at least."""
        out = []
        for _ in range(self.problems):
            right = rng.random(self.programs) < self.right
            right[:2] = True, False
            right = rng.permutation(right)
            kind = rng.random(self.tests)
            passed = np.ones((self.programs, self.tests), dtype=bool)
            for t, k in enumerate(kind):
                if k < self.faulty:
                    passed[:, t] = rng.random(self.programs) < 0.5
                elif k >= self.faulty + (1 - self.faulty) * self.lax:
                    passed[:, t] = right | (rng.random(self.programs) < 0.5 * rng.random())
            out.append(SeedProblem(passed, right))
        return out
