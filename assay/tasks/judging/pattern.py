"""How a pattern of boundary cases is registered: a rule that draws question, reference and response."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from assay.tasks.judging.ternary import Letter

Drawn = tuple[str, str, str]
"""Question, reference, and the end of the response, or all of it."""


class Pattern(NamedTuple):
    """A generator of items that have one verdict for one reason; ``whole`` ones write all of the response."""

    draw: Callable[[np.random.Generator], Drawn]
    label: Letter
    kind: str
    domain: str
    whole: bool


PATTERNS: dict[str, Pattern] = {}


def pattern(
    label: Letter, kind: str, domain: str, whole: bool = False
) -> Callable[[Callable[[np.random.Generator], Drawn]], Callable[[np.random.Generator], Drawn]]:
    """Register ``draw(rng)`` under its name."""

    def register(draw: Callable[[np.random.Generator], Drawn]) -> Callable[[np.random.Generator], Drawn]:
        PATTERNS[draw.__name__.strip("_").replace("_", " ")] = Pattern(draw, label, kind, domain, whole)
        return draw

    return register


def among(rng: np.random.Generator, low: int, high: int) -> int:
    """Return an integer in [low, high)."""
    return int(rng.integers(low, high))


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Return different words by lot."""
    return [str(w) for w in rng.choice(WORDS, size=count, replace=False)]


WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "ivory", "jetty", "koala", "lemon")
