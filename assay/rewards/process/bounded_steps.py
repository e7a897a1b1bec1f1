"""Process rewards that repeating easy steps cannot raise: clipped, differences, or both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.signals.steps import Steps

Bound = Literal["none", "clip", "delta", "clip_delta", "mean"]


@part("reward", "bounded_steps")
@dataclass(frozen=True, slots=True)
class BoundedSteps:
    """alpha b_k on the last learnable token of step k, and R_i = outcome times the verdict's score for the answer.

    b is made of the scores p_1 ... p_K, each in [0, 1]:

    - ``clip``: min(p_k - eta, 0): at most 0, and a step that is good enough costs nothing;
    - ``delta``: p_k - p_{k+1} for k < K - 1, p_{K-1}, and 0 for the last step: what is earned from step k < K on is
      p_k, whatever follows; a single step earns 0;
    - ``clip_delta``: ``delta`` of the clipped scores;
    - ``none``: p_k; ``mean``: p_k / K, for comparison.

    Scores come as the signal ``step_scores`` in [-1, 1], of which p = (1 + score) / 2. Where the scorer could not score
    a response, or the verifier abstained, the sample has no reward. A task without a reference has R_i = 0.

    Source: arXiv 2410.15115.

    Args:
        scorer, steps: see :class:`assay.rewards.process.step_scores.StepScores`.
        bound: see above.
        eta: threshold of ``clip``, in [0, 1].
        alpha: weight of the steps, at least 0.
        outcome: weight of the answer.

    Raises:
        UsageError: ``eta`` or ``alpha`` out of range.
    """

    scorer: Any = "verdict"
    steps: Steps = field(default_factory=Steps)
    bound: Bound = "clip_delta"
    eta: float = 0.5
    alpha: float = 0.02
    outcome: float = 1.0
    signal: StepScores = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1 or self.alpha < 0:
            raise UsageError(
                f"reward 'bounded_steps': eta {self.eta:g} must be in [0, 1] and alpha {self.alpha:g} at least 0"
            )
        object.__setattr__(self, "signal", StepScores(self.scorer, self.steps))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    def __call__(self, batch: Batch) -> Reward:
        scores, steps = batch.signals["step_scores"], batch.signals["steps"]
        scored = ~scores.isnan().any(-1)
        ends = step_ends(steps, batch.mask)
        by_step = sum_by_step(torch.where(scored[:, None], (1 + scores) / 2 * self._last(steps), 0), steps)
        known = sum_by_step(ends.to(scores.dtype), steps) > 0
        bounded = self.alpha * bound_scores(by_step, known, self.bound, self.eta)
        tokens = torch.where(ends & scored[:, None], bounded.gather(1, steps.clamp(min=0)), 0)
        passed = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        answered = torch.tensor([t.reference is not None for t in batch.tasks], dtype=torch.bool)
        verdict = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        answer = torch.where(answered & passed, verdict, 0)
        terms = {"steps": tokens.sum(-1), "answer": answer}
        return Reward(self.outcome * answer, tokens, scored & (passed | ~answered), terms)

    @staticmethod
    def _last(steps: Tensor) -> Tensor:
        """Where a step's last token is, learnable or not: there its score stands, which may be zero."""
        after = torch.nn.functional.pad(steps[:, 1:], (0, 1), value=-1)
        return ((steps >= 0) & (steps != after)).to(torch.float32)


def bound_scores(
    scores: Float[Tensor, "N K"], known: Bool[Tensor, "N K"], bound: Bound, eta: float
) -> Float[Tensor, "N K"]:
    """Return b of each known step of a response, 0 for the others; see :class:`BoundedSteps`."""
    counts = known.sum(-1, keepdim=True)
    held = torch.where(known, (scores - eta).clamp(max=0) if bound.startswith("clip") else scores, 0)
    if bound == "mean":
        return held / counts.clamp(min=1)
    if not bound.endswith("delta"):
        return held
    # By rank among the known steps, since a step in between may have no learnable token.
    order = torch.argsort(~known, dim=1, stable=True)
    packed = held.gather(1, order)
    rank = torch.arange(packed.shape[1], device=packed.device)
    following = torch.where(rank + 1 < counts - 1, torch.nn.functional.pad(packed[:, 1:], (0, 1)), 0)
    delta = torch.where(rank < counts - 1, packed - following, 0)
    return torch.zeros_like(held).scatter(1, order, delta)
