"""Cases at the boundaries of right, wrong and invalid, made by rules: patterns of answers that judges disagree on."""

from __future__ import annotations

import numpy as np

from assay.errors import UsageError, nearest
from assay.tasks.judging import boundary_invalid, boundary_right, boundary_wrong
from assay.tasks.judging.pattern import PATTERNS
from assay.tasks.judging.ternary import Item

__all__ = ["PATTERNS", "boundary_case", "boundary_cases", "boundary_invalid", "boundary_right", "boundary_wrong"]

THOUGHTS = (
    "Let me see what is asked.",
    "I write down what is given.",
    "Each part is done in turn.",
    "A second look finds no slip.",
    "There may be a shorter way.",
    "That settles it.",
)
ENDS = ("The answer is {}.", "Final answer: {}", r"So we get $\boxed{{{}}}$.", "Therefore: {}")


def boundary_case(name: str, rng: np.random.Generator) -> Item:
    """Return an item of a pattern, with thinking before its answer.

    Raises:
        UsageError: no pattern is called that.
    """
    if name not in PATTERNS:
        raise UsageError(f"no pattern of boundary cases is called {name!r}{nearest(name, PATTERNS)}")
    found = PATTERNS[name]
    question, reference, end = found.draw(rng)
    if not found.whole:
        thoughts = " ".join(rng.choice(THOUGHTS, size=int(rng.integers(2, 5)), replace=False).tolist())
        end = f"<think>{thoughts}</think>\n{str(rng.choice(ENDS)).format(end)}"
    return Item(question, reference, end, found.label, found.kind, found.domain, name)


def boundary_cases(each: int, rng: np.random.Generator) -> list[Item]:
    """Return ``each`` items of every pattern."""
    return [boundary_case(name, rng) for name in PATTERNS for _ in range(each)]
