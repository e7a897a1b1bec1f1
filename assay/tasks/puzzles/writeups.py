"""Which write-up is of which challenge: competitions and tasks are called differently everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Writeup:
    """How somebody solved a task of a competition."""

    competition: str
    task: str
    text: str


def similarity(one: str, other: str) -> float:
    """Return how alike two names are, in [0, 1], letters' case and blanks around them apart.

    1 if they are equal; 0.9 + 0.1 (shorter length / longer) if one is in the other; else the share of matching blocks
    (Ratcliff and Obershelp), 0 where the letters they have in common are at most 0.3 of the longer one.
    """
    a, b = " ".join(one.lower().split()), " ".join(other.lower().split())
    if a == b:
        return 1.0
    if not a or not b:
        return 0.0
    if a in b or b in a:
        return 0.9 + 0.1 * min(len(a), len(b)) / max(len(a), len(b))
    common = sum((Counter(a) & Counter(b)).values()) / max(len(a), len(b))
    return SequenceMatcher(None, a, b, autojunk=False).ratio() if common > 0.3 else 0.0


def combined(competition: float, task: float) -> float:
    """Return the score of two similarities: 0.4 competition + 0.6 task."""
    return 0.4 * competition + 0.6 * task


def matched(competition: str, task: str, writeups: Sequence[Writeup], threshold: float = 0.9) -> list[Writeup]:
    """Return the write-ups whose score is at least ``threshold``, the best first."""
    scored = [(combined(similarity(competition, w.competition), similarity(task, w.task)), w) for w in writeups]
    return [w for score, w in sorted(scored, key=lambda pair: -pair[0]) if score >= threshold - 1e-12]
