"""A reward for each sentence of an answer: whether it is correct, and how much the answer is preferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.judges.anchored_pairs import AnchoredPairs
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.signals.steps import Steps
from assay.types import Task


@part("reward", "sentences")
class SentenceReward:
    """r_j = (correct c_j + useful pref) / (correct + useful), placed on the last learnable token of sentence j.

    c_j is 1 or 0, as a judge of sentences says; pref, the same for all sentences of an answer, how surely it is
    preferred to an answer that the task already has. Without a judge of preferences r_j = c_j. Credit ``step_reward``
    compares sentences within the group and gives each token what its sentence has earned. An answer that either judge
    cannot be read on has no reward, nor has one whose verifier failed; take verifier ``none`` where nothing else
    judges. Terms: ``correct``, the share of correct sentences; ``preference``.

    Source: TRM (arXiv 2509.25409); division by the weights' sum is a choice.

    Args:
        scorer: of steps, see :class:`~assay.rewards.process.step_scores.StepScores`; 1 is correct, -1 is not.
        preferences: see :class:`~assay.rewards.judges.anchored_pairs.AnchoredPairs`, or an engine; ``None`` for none.
        steps: how answers are cut into sentences.
        correct, useful: weights.

    Raises:
        UsageError: weights that are negative or both 0; before a run, a task without an answer to compare with.
    """

    def __init__(
        self,
        scorer: Any,
        preferences: Any = None,
        steps: Steps | None = None,
        correct: float = 1.0,
        useful: float = 2.0,
    ):
        if min(correct, useful) < 0 or correct + useful == 0:
            raise UsageError(f"reward 'sentences': weights {correct:g} and {useful:g} are not below 0, and not both 0")
        self.scores = StepScores(scorer, Steps("sentence") if steps is None else steps)
        self.pairs = None if preferences is None else preferences
        if self.pairs is not None and not isinstance(self.pairs, AnchoredPairs):
            self.pairs = AnchoredPairs(self.pairs)
        self.correct, self.useful = correct, useful if self.pairs is not None else 0.0

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.scores, self.scores.steps})

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task that has no answer to compare with."""
        if self.pairs is not None:
            self.pairs.check_tasks(tasks)

    def __call__(self, batch: Batch) -> Reward:
        scores, steps = batch.signals[self.scores.name].to(batch.rewards.dtype), batch.signals["steps"]
        known = ~scores.isnan().any(-1)
        ends = step_ends(steps, batch.mask)
        # A step's score stands on its last token, learnable or not. What it is outside of steps, or of an answer that
        # has none, nobody reads.
        said = torch.where(step_ends(steps, steps >= 0), scores, 0)
        correct = (sum_by_step(said, steps).gather(1, steps.clamp(min=0)) + 1) / 2
        preference, valid = torch.zeros_like(batch.rewards), judged(batch) & known
        if self.pairs is not None:
            found = self.pairs(batch)
            assert found.valid is not None
            preference, valid = found.terms["preference"], valid & found.valid
        total = self.correct + self.useful
        values = (self.correct * correct + self.useful * preference[:, None]) / total
        tokens = torch.where(ends & valid[:, None], values, 0)
        share = torch.where(ends, correct, 0).sum(-1) / ends.sum(-1).clamp(min=1)
        terms = {"correct": torch.where(known, share, 0), "preference": preference}
        return Reward(torch.zeros_like(batch.rewards), tokens, valid, terms)
