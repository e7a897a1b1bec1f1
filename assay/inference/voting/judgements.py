"""The verdict of a reward model that reasons: what most of its judgements of the same pair say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.inference.base import Answer, Budget
from assay.inference.election import Ties
from assay.inference.voting.majority import Majority
from assay.registry import part
from assay.rewards.outcome.vote import Ballot
from assay.types import Task

BALLOT = Ballot(rules=("answer_tag",), fallback="none", equal="exact")


@part("inference", "voting")
@dataclass(frozen=True, slots=True)
class Voting:
    """Voting@k: of k sampled judgements of a task, the verdict that most of their ``<answer>`` tags give.

    A judgement without an ``<answer>`` has no vote; where none has one, it abstains. k is the budget:

        assay eval runs/reward-model --strategy "sample,voting" --budgets 1,15

    with tasks that show two responses and ask for the number of the better one in ``<answer>`` tags. Unlike
    ``majority``, which reads an answer off any last line, it counts what the judge has said in its form alone.

    Source: R1-Reward (arXiv 2505.02835), which takes 15 judgements.

    Args:
        sampling: how tokens are drawn.
        ties: between verdicts given equally often: the first to appear, or one at random.
        least: abstain where fewer than this share of the votes agree.
    """

    sampling: Sampling = field(default_factory=Sampling)
    ties: Ties = "first"
    least: float = 0.0

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        found = Majority(self.sampling, BALLOT, self.ties, self.least)(tasks, engine, budget, rng)
        return [a if max(a.meta["clusters"], default=-1) >= 0 else replace(a, text=None) for a in found]
