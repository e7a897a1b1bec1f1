"""Proposals whose verdicts depend on how tasks that were made from them are answered: a second sampling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.engines.base import Engine
from assay.rollout.derived import Derived
from assay.rollout.single_turn import SingleTurn, fits
from assay.types import Ask, Episode, Group, Task, Verdict

LONG = "what it proposes leaves no room for a response"


@dataclass(slots=True)
class Proposing(Derived):
    """A rollout of proposers: what is proposed is answered by the policy as it is, and says what the proposal is worth.

    Subclasses say by :meth:`pose` which task a response proposes, by :meth:`worth` what its accuracy is worth, and in
    :meth:`collect` or :meth:`derive` what is asked of proposers.
    """

    @abstractmethod
    def pose(self, group: Group, episode: Episode, number: int) -> Task | Verdict:
        """Return the task that response ``number`` of a group proposes; the verdict on it, if it proposes none."""

    @abstractmethod
    def worth(self, accuracy: float) -> Verdict:
        """Return the verdict on a proposal from the share of right answers to it, in [0, 1]."""

    def settled(
        self, proposals: Sequence[Group], n: int, engine: Engine, rng: np.random.Generator
    ) -> tuple[list[Group], list[Group]]:
        """Have what is proposed answered ``n`` times each: return the proposals, judged, and the judged answers.

        A proposal is judged by :meth:`pose` or, from the answers that could be judged, by :meth:`worth`. Its verdict
        abstains where none of them could. What leaves no room for an answer in the model's context is worth what
        nobody solves is worth.
        """
        said: list[list[Task | Verdict]] = [
            [
                Verdict.abstain("generation failed") if e.stop == "error" else self.pose(group, e, i)
                for i, e in enumerate(group.episodes)
            ]
            for group in proposals
        ]
        posed = [Ask(one, n) for row in said for one in row if isinstance(one, Task)]
        short = [fits(ask, engine, self.further) for ask in posed]
        asked = [ask for ask, fit in zip(posed, short, strict=True) if fit]
        solved = self._judged(SingleTurn(self.further).collect(asked, engine, rng)) if asked else []
        answers, fitting = iter(solved), iter(short)
        judged = []
        for group, row in zip(proposals, said, strict=True):
            verdicts = []
            for one in row:
                if isinstance(one, Verdict):
                    verdicts.append(one)
                elif not next(fitting):
                    verdicts.append(self.worth(0.0))
                else:
                    share = accuracy(next(answers))
                    none = Verdict.abstain("no answer to it could be judged")
                    verdicts.append(none if share is None else self.worth(share))
            judged.append(group.judged(verdicts))
        return judged, solved


def accuracy(group: Group) -> float | None:
    """Return the share of right responses among those of a group that were judged; ``None`` without any."""
    passed = [v.passed for v in group.verdicts if v.passed is not None]
    return sum(passed) / len(passed) if passed else None
