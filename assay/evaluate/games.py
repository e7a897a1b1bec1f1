"""How well games are played: success, progress, and actions that were none, over repeated runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample

_ACTIONS = re.compile(r"(\d+) of (\d+) actions valid")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A measure over repeated runs: its mean, the unbiased standard deviation (0 for one run), and each run's."""

    mean: float
    deviation: float
    runs: tuple[float, ...]

    @classmethod
    def of(cls, runs: Sequence[float]) -> Repeated:
        spread = float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0
        return cls(float(np.mean(runs)), spread, tuple(runs))


@dataclass(frozen=True, slots=True)
class GameReport:
    """What runs come to, in shares.

    Attributes:
        success: SR, of the games whose target was reached.
        progress: PG, the mean progress.
        invalid: IAR = 1 - valid / proposed actions, all games of a run together; NaN without actions.
    """

    success: Repeated
    progress: Repeated
    invalid: Repeated


class GameScores:
    """Compares runs of one model on the same games, played in environment ``arcade``, by the state they came to."""

    def __call__(self, *runs: Evaluation) -> GameReport:
        """Return what the runs come to; games that abstained are left out.

        Raises:
            UsageError: no runs, or one in which no game was judged.
        """
        judged = [[s for s in run.samples if s.passed is not None] for run in runs]
        if not judged or not all(judged):
            raise UsageError("scores of games need runs, each with a game that was judged")
        return GameReport(
            success=Repeated.of([float(np.mean([s.passed is True for s in run])) for run in judged]),
            progress=Repeated.of([float(np.mean([s.score for s in run])) for run in judged]),
            invalid=Repeated.of([invalid_rate(run) for run in judged]),
        )


def invalid_rate(samples: Sequence[Sample]) -> float:
    """Return IAR, from what the verdicts say of actions; NaN where none was proposed."""
    counts = [tuple(map(int, found.groups())) for s in samples if (found := _ACTIONS.search(s.feedback))]
    valid, proposed = sum(v for v, _ in counts), sum(n for _, n in counts)
    return 1 - valid / proposed if proposed else float("nan")
