"""Majority of responses that branch where the next word was open in meaning."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.election import clusters, elect, totals
from assay.inference.meter import Meter
from assay.registry import part
from assay.rewards.outcome.vote import Ballot
from assay.rollout.semantic_branching import grow
from assay.types import Task


@part("inference", "semantic_branching")
@dataclass(frozen=True, slots=True)
class BranchingVote:
    """The answer that most of the responses give, sampled as by the rollout ``semantic_branching``.

    A branch costs only what comes after it, so that the same tokens buy more responses; they are alike in what they
    share. A budget of tokens is one of as many samples as it pays for at their longest.

    Source: the exploration of ROSE (arXiv 2601.05053), with a vote at its end.

    Args:
        sampling: how tokens are drawn.
        eps, top: see :class:`~assay.rollout.semantic_branching.SemanticBranching`.
        ballot: where an answer stands and when two are one.

    Raises:
        UsageError: an option out of range.
    """

    sampling: Sampling = field(default_factory=Sampling)
    eps: float = 0.5
    top: int = 20
    ballot: Ballot = field(default_factory=Ballot)

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1 or self.top < 2:
            raise UsageError("inference 'semantic_branching': eps must be in [0, 1] and top at least 2")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        longest = self.sampling.max_tokens if meter.budget.tokens is None else meter.budget.tokens
        sampling = self.sampling
        if longest < sampling.max_tokens:
            sampling = Sampling(longest, sampling.temperature, sampling.top_p, sampling.top_k, sampling.stop)
        grown = grow([t.prompt for t in tasks], [meter.samples] * len(tasks), engine, sampling, rng, self.eps, self.top)
        out = []
        for i, g in enumerate(grown):
            meter.spent[i] += sum(g.fresh)
            of = clusters(tasks[i], g.episodes, self.ballot)
            winner = elect(totals(of, [1.0] * len(of)), "first", rng)
            text = g.episodes[0 if winner is None else of.index(winner)].text
            out.append(meter.answer(i, text, g.episodes, clusters=of, fresh=g.fresh))
        return out
