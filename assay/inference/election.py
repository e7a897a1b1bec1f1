"""Which answer has the most votes: responses that give the same answer are one cluster, and the heaviest is elected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from assay.batch import Batch
from assay.rewards.outcome.vote import Ballot
from assay.types import Ask, Episode, Group, Task

Ties = Literal["first", "random"]


def clusters(task: Task, episodes: Sequence[Episode], ballot: Ballot) -> tuple[int, ...]:
    """Return for each response the number of its answer's cluster, from 0 in order of appearance; -1 without answer."""
    if not episodes:
        return ()
    batch = Batch.from_groups([Group(Ask(task, len(episodes)), tuple(episodes))])
    return ballot.of(batch, range(len(episodes)), ballot.answers(batch)).clusters


def totals(of: Sequence[int], weights: Sequence[float | None], bonus: float = 0.0) -> dict[int, float]:
    """Return the weight of each cluster: sum of (weight + ``bonus``) over its responses that have a weight."""
    out: dict[int, float] = {}
    for cluster, weight in zip(of, weights, strict=True):
        if cluster >= 0 and weight is not None:
            out[cluster] = out.get(cluster, 0.0) + weight + bonus
    return out


def elect(found: dict[int, float], ties: Ties, rng: np.random.Generator) -> int | None:
    """Return the heaviest cluster, the ``first`` to appear or a ``random`` one of equals; ``None`` if there is none."""
    if not found:
        return None
    top = max(found.values())
    tied = sorted(c for c, w in found.items() if math.isclose(w, top, rel_tol=1e-12, abs_tol=1e-12))
    return tied[int(rng.integers(len(tied)))] if ties == "random" and len(tied) > 1 else tied[0]
