"""Whether what a reward is judged by, the reward, and what is wanted in the end go the same way over a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr


@dataclass(frozen=True, slots=True)
class Links:
    """Rank correlations over the windows of a run, each from one evaluation to the next.

    Attributes:
        judged_reward: of how well the reward is judged to be and the reward.
        reward_evaluation: of the reward and the evaluation.
        judged_evaluation: of the first and the last. All are NaN where one of the two never changes, or there are fewer
            than 3 windows.
        peak: the window with the best evaluation, the first of equals: beyond it more reward is over-optimisation.
        alarm: the first window at the end of some in a row, in each of which the reward rose and the evaluation fell,
            and which is far enough below the best before it; ``None`` if there is none.
    """

    judged_reward: float
    reward_evaluation: float
    judged_evaluation: float
    peak: int
    alarm: int | None


def links(
    judged: Sequence[float], reward: Sequence[float], evaluation: Sequence[float], falls: int = 2, least: float = 0.0
) -> Links:
    """Return the links between three measurements of the same windows.

    Args:
        judged: ``(W,)`` how well the reward is judged to be: accuracy of a reward model, agreement with verdicts.
            Windows without it (NaN) are left out of its links.
        reward: ``(W,)`` that training saw.
        evaluation: ``(W,)`` what is wanted.
        falls: windows in a row that make the alarm.
        least: how far below its best the evaluation has to be by then; what chance alone does is no alarm.

    Raises:
        ValueError: unequal lengths, no window, or ``falls`` below 1.

    Source: the three links of "The Alignment Ceiling" (arXiv 2311.00168); the numbers are ours.
    """
    if not len(judged) == len(reward) == len(evaluation) or not len(reward) or falls < 1:
        raise ValueError(
            f"{len(judged)}, {len(reward)}, {len(evaluation)} windows, {falls} falls: take as many of each, 1 or more"
        )
    apart = [a > b and x < y for (a, x), (b, y) in _neighbours(reward, evaluation)]
    far = [max(evaluation[:t]) - evaluation[t] >= least for t in range(falls, len(reward))]
    alarm = next((t for t, lost in enumerate(far, falls) if lost and all(apart[t - falls : t])), None)
    peak = int(np.nanargmax(evaluation)) if np.isfinite(evaluation).any() else 0
    return Links(_rank(judged, reward), _rank(reward, evaluation), _rank(judged, evaluation), peak, alarm)


def _neighbours(x: Sequence[float], y: Sequence[float]) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Pairs of a window and the one before it."""
    both = list(zip(x, y, strict=True))
    return list(zip(both[1:], both, strict=False))


def _rank(x: Sequence[float], y: Sequence[float]) -> float:
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    told = np.isfinite(a) & np.isfinite(b)
    a, b = a[told], b[told]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(spearmanr(a, b).statistic)
