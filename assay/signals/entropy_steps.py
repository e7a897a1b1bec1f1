"""Steps that begin where the policy was unsure how to go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.errors import RunError, UsageError
from assay.types import Episode, Span


@dataclass(frozen=True, slots=True)
class EntropySteps:
    """Cuts a response before tokens of high entropy, so that each step holds about as many of these.

    Candidates are the ``share`` of the response's tokens whose sampling distributions had the most entropy, and those
    that equal the least of them. M = max(1, round(candidates / per_step)) steps part them into runs of equal number,
    the longer ones first; a step begins with its first candidate, and the first step with the response. Where an
    episode brings spans of kind ``step``, those are its steps.

    Source: GRPO-VPS (arXiv 2604.20659).

    Args:
        share: in (0, 1].
        per_step: candidates in a step, about; 1 or more.

    Raises:
        UsageError: an option out of range.
        RunError: when called, for an episode whose engine reported no entropies.
    """

    share: float = 0.2
    per_step: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.per_step < 1:
            raise UsageError(
                f"entropy steps: share {self.share:g} must be in (0, 1] and per_step {self.per_step} at least 1"
            )

    def of(self, episode: Episode, decode: Callable[[Sequence[int]], str]) -> tuple[Span, ...]:
        """Return the steps of an episode; they cover it and none is empty."""
        own = tuple(span for span in episode.spans if span.kind == "step")
        if own or not len(episode.tokens):
            return own
        if episode.entropies is None:
            raise RunError("entropy steps need an engine that reports entropies; cut steps by text or 'fixed' instead")
        borders = self.borders(episode.entropies)
        return tuple(Span("step", a, b) for a, b in pairwise([*borders, len(episode.tokens)]))

    def borders(self, entropies: np.ndarray) -> list[int]:
        """Return where each step begins, the first at 0, given the entropy ``(T,)`` of each token, T at least 1."""
        count = max(1, round(self.share * len(entropies)))
        least = np.sort(entropies)[-count]
        candidates = np.flatnonzero(entropies >= least)
        parts = np.array_split(candidates, max(1, round(len(candidates) / self.per_step)))
        return sorted({0, *(int(part[0]) for part in parts[1:])})
