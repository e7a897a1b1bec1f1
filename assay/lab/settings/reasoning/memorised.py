"""Models that have some answers by heart and work out others, before problems and before their variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.papers.data.s183_vera import contamination
from assay.tasks.procedural.specified import instance
from assay.types import Task
from assay.verify.kind import KindVerifier
from assay.verify.programs.specification import Specification

SOURCE = """
SEED = {{"a": {a}, "b": {b}}}

def sample(rng):
    return {{"a": rng.randint(2, 60), "b": rng.randint(2, 60)}}

def verify(theta):
    return theta["a"] != theta["b"], theta["a"] * theta["b"] - theta["a"]

def render(theta):
    return f"{{theta['a']}} rows of {{theta['b']}} chairs lose one chair each. How many are left?"
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """Seeds of one family, each with one equivalent variant; an arm says which share of seeds a model knows by heart.

    What it knows by heart it answers rightly where the text is the seed's, and with the seed's answer where it is a
    variant's. What it does not, it works out, and is right with chance ``skill``.

    Args:
        seeds: problems.
        tries: k of Avg@k.
        skill: chance that what is worked out is right.
    """

    seeds: int = 12
    tries: int = 5
    skill: float = 0.9

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return Avg@k on ``seeds`` and ``variants``, and ``memory``, their difference."""
        rng = np.random.default_rng([seed, 43])
        judge = KindVerifier()
        known: dict[str, dict[str, list[bool]]] = {"seeds": {}, "variants": {}}
        for i in range(self.seeds):
            a, b = (int(x) for x in rng.integers(2, 60, size=2))
            own = Task(f"chairs-{seed}-{i}", SOURCE.format(a=a, b=b), str(a * b - a), "number")
            variant = instance(Specification(own.id, SOURCE.format(a=a, b=b)), own, 0)
            assert isinstance(variant, Task)
            by_heart = rng.random() < arm["memory"]
            for name, task in (("seeds", own), ("variants", variant)):
                said = [
                    str(own.reference) if by_heart else str(int(str(task.reference)) + int(rng.random() >= self.skill))
                    for _ in range(self.tries)
                ]
                known[name][own.id] = [bool(judge(task, text).passed) for text in said]
        gap = contamination(known["seeds"], known["variants"])
        return {"seeds": gap.seeds, "variants": gap.variants, "memory": gap.memory}
