"""The response that a scorer likes best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.inference.base import Answer, Budget
from assay.inference.election import clusters, elect, totals
from assay.inference.meter import Meter
from assay.inference.scoring.base import best, unscored
from assay.inference.scoring.scorers import as_scorer
from assay.registry import part
from assay.rewards.outcome.vote import Ballot
from assay.types import Task


@part("inference", "best_of_n")
@dataclass(frozen=True, slots=True)
class BestOfN:
    """As many responses as the budget allows; the answer is the best-scored one.

    Responses that the scorer cannot score are out of the question; where that is all of them, the first is the answer.

    Args:
        scorer: see :func:`~assay.inference.scoring.scorers.as_scorer`.
        sampling: how tokens are drawn.
        least: abstain where the best score is below this; ``None`` never.
        ties: between equals at the top: the ``first``, or the first of those whose answer most of them give.
        ballot: where an answer stands and when two are one.
    """

    scorer: Any = "confidence"
    sampling: Sampling = field(default_factory=Sampling)
    least: float | None = None
    ties: Literal["first", "majority"] = "first"
    ballot: Ballot = field(default_factory=Ballot)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", as_scorer(self.scorer))

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling, self.scorer)
        out = []
        for i, (episodes, scores) in enumerate(meter.scored()):
            top = best(scores)
            if top is not None and self.ties == "majority":
                level = [j for j, s in enumerate(scores) if s.value == scores[top].value]
                of = clusters(tasks[i], [episodes[j] for j in level], self.ballot)
                winner = elect(totals(of, [1.0] * len(of)), "first", rng)
                top = level[0 if winner is None else of.index(winner)]
            value = None if top is None else scores[top].value
            low = self.least is not None and value is not None and value < self.least
            text = None if low else episodes[top or 0].text
            values = [s.value for s in scores]
            out.append(meter.answer(i, text, episodes, scores=values, unscored=unscored(scores)))
        return out
