"""What each step adds to the chance that another policy, the prover, comes out right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops import group_count, group_sum
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.signals.steps import Steps


@part("reward", "prover_progress")
class ProverProgress:
    """A_k = V_k - V_(k-1) on the last token of step k, beside the verdict's score of the response.

        V_k = 1 - (1 - p_k)^best_of,   p_k = (1 + score) / 2 of the beginning that ends with step k
        V_0 = mean V_1 of the group's other responses

    p, kept within 0 and 1, is the chance that a policy mu completes the beginning rightly; with ``best_of`` above 1 the
    prover is the best of that many of its completions. V_0 is the same for whatever the response does first, so that it
    changes no expected gradient; alone in its group, a response's first step has none.

    A is an advantage of each step and not for returns: summed from a step on it comes to V_K - V_(k-1), which no longer
    tells steps apart. The credit ``step_reward`` with ``kind = "none"`` puts it on the step's own tokens.

    Args:
        prm: scores steps, see :class:`~assay.rewards.process.step_scores.StepScores`.
        steps: how responses are cut.
        best_of: K of the prover, at least 1.

    Raises:
        UsageError: ``best_of`` below 1.

    Source: process advantage verifiers (arXiv 2410.08146), equations 1 and 5; V_0 without a score of the question is
    our reading.
    """

    def __init__(self, prm: Any, steps: Steps | None = None, best_of: int = 1):
        if best_of < 1:
            raise UsageError(f"reward 'prover_progress': best_of {best_of} must be at least 1")
        self.steps = steps or Steps()
        self.signal, self.best_of = StepScores(prm, self.steps), best_of

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    def __call__(self, batch: Batch) -> Reward:
        scores, steps = batch.signals["step_scores"], batch.signals["steps"]
        ends, valid = step_ends(steps, batch.mask), judged(batch)
        told = ~scores.isnan().any(-1) & ends.any(-1) & valid
        value = 1 - (1 - ((1 + sum_by_step(scores, steps)) / 2).clamp(0, 1)) ** self.best_of
        first, others = value[:, 0], group_count(batch.group, told, value.dtype) - 1
        start = torch.where(others > 0, (group_sum(first, batch.group, told) - first) / others, first)
        gains = torch.diff(value, dim=1, prepend=start[:, None])
        tokens = torch.where(ends & told[:, None], gains.gather(1, steps.clamp(min=0)), 0)
        terms = {"progress": tokens.sum(-1), "scored": told.to(value.dtype)}
        score = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        return Reward(score, tokens, valid, terms)


def progress(values: Sequence[float], start: float) -> list[float]:
    """Return what each step adds to ``values`` at their ends, from ``start`` on."""
    return [b - a for a, b in zip([start, *values], values, strict=False)]
