"""What adaptation to a task does to the solutions it is sampled from: are they better, or only more alike?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.statistics.at_k import best_of_k
from assay.statistics.pass_at_k import pass_at_k


@dataclass(frozen=True, slots=True)
class Step:
    """The samples of one task after some gradient steps on it.

    Attributes:
        solutions: one per sample, equal where they count as the same.
        scores: how good each is.
    """

    solutions: tuple[Hashable, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sharpness:
    """Means over tasks, after as many gradient steps as its place in the list says.

    Attributes:
        mean: score of a sample.
        best: best score of ``k`` samples.
        distinct: different solutions among ``k`` samples.
        spread: standard deviation of a task's scores.
        k: see above, the same at every step and for every task, so that steps with more samples do not look more
            diverse.
        tasks: that took as many steps.
    """

    mean: float
    best: float
    distinct: float
    spread: float
    k: int
    tasks: int


def distinct_at_k(solutions: Sequence[Hashable], k: int) -> float:
    """Return how many different solutions to expect among ``k`` of the n: sum_s (1 - C(n - n_s, k) / C(n, k)).

    Of a, a, a, b two hold 1.5: 1 - 0 for a, and for b the 3 of 6 pairs that have it.

    Raises:
        ValueError: ``k`` is not from 1 to n.
    """
    counts = np.array(list(Counter(solutions).values()), dtype=np.int64)
    return float(pass_at_k(np.full(len(counts), len(solutions)), counts, k).sum())


def sharpening(tasks: Sequence[Sequence[Step]]) -> list[Sharpness]:
    """Return for each number of gradient steps how good and how diverse the samples are.

    Args:
        tasks: of each task its steps, the samples of the unadapted policy first. A task that stopped early is left out
            of the steps it did not take; one step's numbers are then of fewer tasks than another's.

    Raises:
        ValueError: a step without samples, or with as many scores as it has no samples.
    """
    if any(not s.solutions or len(s.solutions) != len(s.scores) for steps in tasks for s in steps):
        raise ValueError("every step needs at least one sample, and as many scores")
    k = min((len(s.solutions) for steps in tasks for s in steps), default=1)
    out = []
    for number in range(max(map(len, tasks), default=0)):
        there = [steps[number] for steps in tasks if len(steps) > number]
        rows = [
            (
                float(np.mean(s.scores)),
                best_of_k(s.scores, s.scores, k),
                distinct_at_k(s.solutions, k),
                float(np.std(s.scores)),
            )
            for s in there
        ]
        mean, best, distinct, spread = np.mean(rows, axis=0).tolist()
        out.append(Sharpness(mean, best, distinct, spread, k, len(there)))
    return out


def oversharpened(steps: Sequence[Sharpness]) -> int | None:
    """Return the first step that made solutions more alike and the best of k no better; ``None`` if there is none.

    The mean may well have risen: that is the sharpening of a distribution, and what its best sample is worth is what
    search over the unadapted one competes with.
    """
    for number in range(1, len(steps)):
        here, before = steps[number], steps[number - 1]
        if here.distinct < before.distinct - 1e-12 and here.best <= before.best + 1e-12:
            return number
    return None
