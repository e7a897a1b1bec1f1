"""Scores from 0 to 10 that a model writes at the end of its reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling

SCORE = re.compile(r"\bscore\b[^\w\n-]*(-?\d+(?:\.\d+)?)", re.IGNORECASE)
MOST = 10.0


def read_score(reply: str) -> float | None:
    """Return the last score of a reply, brought into [0, 10]; ``None`` if it has none."""
    found = SCORE.findall(reply)
    return min(max(float(found[-1]), 0.0), MOST) if found else None


@dataclass(frozen=True, slots=True)
class ScoreOfTen:
    """Asks an engine for a score of each pair of texts, ``Score: n``; nothing where it failed or wrote none.

    Args:
        engine: an engine, or the specification of one.
        template: with ``{first}`` and ``{second}``.
        max_tokens: of the reply, which is greedy.
    """

    engine: Any
    template: str
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", judge_of(self.engine, "a judge that gives scores"))

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return scores, in [0, 1]."""
        prompts = [filled(self.template, first=a, second=b) for a, b in pairs]
        out: list[float | None] = []
        for reply in ask(self.engine, prompts, Sampling(self.max_tokens, 0.0)):
            score = None if reply.stop == "error" else read_score(reply.text)
            out.append(None if score is None else score / MOST)
        return out
