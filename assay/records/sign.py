"""A sign that a run's reward is being gamed, as the run folder keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TITLES = {
    "held out": "reward up, held-out tasks not",
    "length": "length explosion",
    "repetition": "repetition",
    "agreement": "reward and verdict part",
    "entropy": "entropy collapse",
    "hollow": "wins by form alone",
}
"""What each sign is called."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign, when it first appeared, and what it was seen in.

    Attributes:
        kind: one of :data:`TITLES`.
        step: RL step after which it appeared.
        since: step at which the earlier window begins.
        text, numbers: see :class:`assay.training.watching.signs.Found`.
        examples: rows of the rollout store, from that step.
    """

    kind: str
    step: int
    since: int
    text: str
    numbers: dict[str, float]
    examples: list[dict[str, Any]]

    @property
    def line(self) -> str:
        """For the log."""
        return f"step {self.step}: sign of a gamed reward, {TITLES[self.kind]}: since step {self.since} {self.text}"
