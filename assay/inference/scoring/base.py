"""What a scorer is, and what its scores are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Engine
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class Score:
    """What a scorer says of one response.

    Attributes:
        value: larger is better; ``None`` where it could not tell, which is never a low score.
        tokens: it read and generated to say so.
        feedback: what a model can learn from it.
    """

    value: float | None
    tokens: int = 0
    feedback: str = ""


@runtime_checkable
class Scorer(Protocol):
    """Scores responses, whole or begun, of whichever tasks."""

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> Sequence[Score]:
        """Return one score per pair; ``engine`` is the one that made the responses."""
        ...

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        """Return how many tokens it can take to score a response, at most; budgets of tokens are kept by it.

        Args:
            task: of the response.
            response: one that is there; or, of one that is yet to be made, its length in tokens, for which it is enough
                to be about right.
            engine: which makes the responses.
        """
        ...


def mean_logprob(episode: Episode, total: bool = False) -> float | None:
    """Return the mean (or the sum) log-probability of the tokens the policy made; ``None`` where it is not known."""
    if episode.logprobs is None or not episode.mask.any():
        return None
    own = episode.logprobs[episode.mask].astype(np.float64)
    value = float(own.sum() if total else own.mean())
    return value if math.isfinite(value) else None


def best(scores: Sequence[Score]) -> int | None:
    """Return the first of the best-scored; ``None`` where nothing has a score."""
    known = [i for i, s in enumerate(scores) if s.value is not None]
    return max(known, key=lambda i: (scores[i].value, -i)) if known else None


def unscored(scores: Sequence[Score]) -> int:
    """Count what could not be scored."""
    return sum(s.value is None for s in scores)
