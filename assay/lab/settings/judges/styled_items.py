"""A judge that knows which generator wrote a response, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.papers.judges.s226_libra import accuracy
from assay.tasks.judging.pointwise import pointwise_items
from assay.types import Ask, Episode, Group, Task, Verdict

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Setting:
    """Two generators solve problems, one more often than the other. The judge accepts what the better one writes.

    An arm says whether items are balanced for ``each`` generator, or over ``all``, as if they were one.

    Args:
        problems, samples: of each generator.
        good, bad: chance that they are right.
    """

    problems: int = 20
    samples: int = 8
    good: float = 0.8
    bad: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy`` of the judge; ``honest``, minus how far it is from chance; ``items``."""
        rng = np.random.default_rng([seed, 226])
        groups = {name: self._groups(name, chance, rng) for name, chance in (("good", self.good), ("bad", self.bad))}
        given = groups if arm["balance"] == "each" else {"all": [g for many in groups.values() for g in many]}
        items = pointwise_items(given, rng, self.samples)
        found = accuracy(items, [item.response.startswith("good") for item in items])
        return {"accuracy": found.mean, "honest": -abs(found.mean - 0.5), "items": float(len(items))}

    def _groups(self, name: str, chance: float, rng: np.random.Generator) -> list[Group]:
        out = []
        for k in range(self.problems):
            texts = [f"{name} answer {i}" for i in range(self.samples)]
            right = (rng.random(self.samples) < chance).tolist()
            episodes = tuple(Episode(NOTHING, NOTHING, NOTHING > 0, None, text, "eos") for text in texts)
            verdicts = tuple(Verdict(float(r), r) for r in right)
            out.append(Group(Ask(Task(str(k), f"Problem {k}"), self.samples), episodes, verdicts))
        return out
