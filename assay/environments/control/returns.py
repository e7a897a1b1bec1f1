"""Returns on a scale that all worlds share, and what a run made of them before and after it began to play."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from assay.environments.control.recorded import recorded
from assay.errors import UsageError

EPISODES = 40
"""That a scale is measured by."""


def normalised_return(value: float, random: float, expert: float) -> float:
    """100 (J - J_random) / (J_expert - J_random): 0 for a random policy, 100 for an expert, both in expectation.

    Args:
        value: J, a return or a mean of some.
        random, expert: what those policies have.

    Raises:
        UsageError: an expert that is no better.

    Source: D4RL (arXiv 2004.07219), appendix; D5RL reports on the same scale.
    """
    if not expert > random:
        raise UsageError(f"a return is normalised between a random policy's, {random:g}, and a higher one of an expert")
    return 100 * (value - random) / (expert - random)


def scale_of(environment: Any, seed: int = 7) -> tuple[float, float]:
    """Return the mean returns of uniform actions and of a world's script, of :data:`EPISODES` episodes each.

    Raises:
        UsageError: the world has no script.
    """
    random, expert = (recorded(environment, {q: EPISODES}, seed).returns.mean() for q in ("random", "expert"))
    return float(random), float(expert)


@dataclass(frozen=True, slots=True)
class Course:
    """What came of learning offline, and of going on online.

    Attributes:
        offline: the return after the last step that learned from the record alone.
        online: ``(step, return)``, from there on.
        area: mean height of the line through these, the end of the offline part its first point: more for who gets
            there sooner, and for who loses nothing when it begins to play.
    """

    offline: float
    online: tuple[tuple[int, float], ...]
    area: float


def course(curve: Sequence[tuple[int, float]], offline: int) -> Course:
    """Return the course of a run.

    Args:
        curve: ``(step, return)`` in their order, as measured after so many steps.
        offline: steps that learned from the record alone.

    Raises:
        UsageError: nothing was measured at the end of the offline part or before, or nothing after it.
    """
    before, after = ([at for at in curve if (at[0] <= offline) == early] for early in (True, False))
    if not before or not after:
        raise UsageError(f"a course needs returns up to step {offline}, where the run goes online, and after it")
    line = [(offline, before[-1][1]), *after]
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(line)) / (line[-1][0] - offline)
    return Course(before[-1][1], tuple(after), area)
