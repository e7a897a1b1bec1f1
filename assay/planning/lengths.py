"""How long responses are: a log-normal with a long tail, cut off at the longest that is allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

SPREAD = 0.7
"""Standard deviation of the logarithm of the length. Responses of one step commonly differ in length by this much: the
longest tenth is then more than 2.4 times the median."""
CELLS = 512
"""Points at which a survival function is known."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Response lengths min(X, longest), X log-normal with log-deviation ``spread``, of mean ``mean``.

    Attributes:
        mean: tokens, in [1, longest].
        longest: tokens.
        spread: of log X; 0 makes all alike.
    """

    mean: float
    longest: int
    spread: float = SPREAD

    def grid(self) -> tuple[Float[np.ndarray, "C"], float]:
        """Return the middles of equal cells over the tokens 0 ... longest, and how many tokens a cell is wide."""
        cells = min(CELLS, self.longest)
        width = self.longest / cells
        return (np.arange(cells) + 0.5) * width, width

    def survival(self) -> Float[np.ndarray, "C"]:
        """Return the share of responses still being written at each point of the grid; its integral is the mean."""
        return _survival(self)

    def square(self) -> float:
        """Return the mean of the squared length: the integral of 2 t S(t)."""
        at, width = self.grid()
        return float((2 * at * self.survival()).sum() * width)

    def longest_of(self, rows: float) -> float:
        """Return the mean of the longest of ``rows`` lengths."""
        _, width = self.grid()
        return float((1 - (1 - self.survival()) ** max(1.0, rows)).sum() * width)


@lru_cache(256)
def _survival(lengths: Lengths) -> Float[np.ndarray, "C"]:
    at, width = lengths.grid()
    if lengths.mean >= lengths.longest:
        return np.ones_like(at)
    if lengths.spread == 0:
        return np.clip((lengths.mean - (at - width / 2)) / width, 0, 1)
    low, high = -10.0, math.log(lengths.longest) + 10 * lengths.spread + 10
    for _ in range(80):
        middle = (low + high) / 2
        if _above(at, middle, lengths.spread).sum() * width < lengths.mean:
            low = middle
        else:
            high = middle
    return _above(at, (low + high) / 2, lengths.spread)


def _above(at: Float[np.ndarray, "C"], mu: float, spread: float) -> Float[np.ndarray, "C"]:
    from scipy.special import ndtr

    return ndtr((mu - np.log(at)) / spread)
