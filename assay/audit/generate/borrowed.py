"""A problem borrowed from other families, for families that are about the response and not the spelling."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from assay.audit.generate.base import Answer, Draw, find

BASES = ("integers", "fractions", "radicals", "points", "complex_numbers", "polynomials")
WORKING_KINDS = frozenset({"both signs", "one missing", "one extra", "reciprocal"})
"""Near misses that say more or less than one value; beside the right answer they would be read as another thing."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A fresh ``draw`` without answers, one right and one wrong answer, and a second wrong one of another value."""

    draw: Draw
    right: Answer
    wrong: Answer
    other: Answer


def borrow(rng: random.Random, bases: Sequence[str] = BASES) -> Borrowed:
    """Draw a problem of one of the families ``bases``."""
    while True:
        old = find(rng.choice(bases)).draw(rng)
        right = old.pick(True, rng)
        misses = [a for a in old.answers[False] if a.kind not in WORKING_KINDS and a.value != old.gold]
        wrong, other = rng.choice(misses), rng.choice(misses)
        if right is not None and wrong.value != other.value:
            return Borrowed(Draw(old.question, old.reference, old.gold, old.verifier), right, wrong, other)


def math(answer: Answer) -> str:
    """Return the answer as it stands in a sentence: LaTeX between dollars."""
    return f"${answer.text}$" if answer.form == "latex" else answer.text


def box(answer: Answer) -> str:
    """Return the answer in a box."""
    return rf"\boxed{{{answer.text}}}"
