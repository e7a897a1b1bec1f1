"""Rewards for the steps of a response, weighted so that their sum is near the least, and for its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.returns import packed_left
from assay.rewards.process.step_scores import StepScores
from assay.rewards.shaping.kl import KLReward
from assay.signals.steps import Steps

Form = Literal["softmin", "min", "sum"]


@part("reward", "process")
@dataclass(frozen=True, slots=True)
class ProcessReward:
    """r*_ik = w_ik r_ik on the last learnable token of step k, and R_i = outcome (score_i - 1) for the answer.

    r_ik is the score of the step, in [-1, 1] (signal ``step_scores``), and w_ik its weight within the response:

    - ``softmin``: softmax_k(-r_ik / temperature), which tends to ``min`` as the temperature tends to 0 and to the mean
      as it grows;
    - ``min``: 1 for the worst step (the last of equals), 0 for the others;
    - ``sum``: 1.

    What the steps have earned from a token on is then about min_k r_ik up to the worst step, and about 0 after it.

    Where the scorer could not score a response, or the verifier abstained from an answer, the sample has no reward. A
    task without a reference has no answer to judge: R_i = 0 there, whatever the verifier says.

    Source: PURE (arXiv 2504.15275), the approximate min-form.

    Args:
        scorer, steps: see :class:`assay.rewards.process.step_scores.StepScores`.
        form: see above.
        temperature: of ``softmin``, above 0.
        outcome: weight of the answer's reward.
        kl_weight: of the divergence from the reference policy, k1 on every learnable token, subtracted.

    Raises:
        UsageError: ``temperature`` not above 0, or ``kl_weight`` negative.
    """

    scorer: Any = "verdict"
    steps: Steps = field(default_factory=Steps)
    form: Form = "softmin"
    temperature: float = 0.1
    outcome: float = 1.0
    kl_weight: float = 0.0
    signal: StepScores = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.temperature > 0 or self.kl_weight < 0:
            raise UsageError(
                f"reward 'process': temperature {self.temperature:g} must be above 0, kl_weight {self.kl_weight:g} not "
                "below it"
            )
        object.__setattr__(self, "signal", StepScores(self.scorer, self.steps))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps, *(KLReward.needs if self.kl_weight else ())})

    def __call__(self, batch: Batch) -> Reward:
        scores, steps = batch.signals["step_scores"], batch.signals["steps"]
        scored = ~scores.isnan().any(-1)
        ends = step_ends(steps, batch.mask)
        # By step, since a step may end on a token that is not learned from; steps without any count for nothing.
        by_step = sum_by_step(torch.where(scored[:, None], scores, 0), steps)
        known = sum_by_step(ends.to(scores.dtype), steps) > 0
        weighed = torch.where(known, by_step * weights(by_step, known, self.form, self.temperature), 0)
        tokens = torch.where(ends & scored[:, None], weighed.gather(1, steps.clamp(min=0)), 0)
        passed = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        answered = torch.tensor([t.reference is not None for t in batch.tasks], dtype=torch.bool)
        verdict = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype) - 1
        answer = torch.where(answered & passed, verdict, 0)
        terms = {"process": tokens.sum(-1), "answer": answer}
        if self.kl_weight:
            divergence = KLReward()(batch)
            assert divergence.tokens is not None
            tokens = tokens + self.kl_weight * divergence.tokens
            terms |= divergence.terms
        return Reward(self.outcome * answer, tokens, scored & (passed | ~answered), terms)


def step_ends(steps: Int[Tensor, "N T"], mask: Bool[Tensor, "N T"]) -> Bool[Tensor, "N T"]:
    """Return where the last learnable token of each step is."""
    order, packed = packed_left(mask)
    mine = torch.where(packed, steps.gather(1, order), -1)
    after = torch.nn.functional.pad(mine[:, 1:], (0, 1), value=-1)
    return torch.zeros_like(mask).scatter(1, order, (mine >= 0) & (mine != after))


def sum_by_step(x: Float[Tensor, "N T"], steps: Int[Tensor, "N T"]) -> Float[Tensor, "N K"]:
    """Return the sum of ``x`` over the tokens of each step."""
    width = int(steps.max()) + 1 if steps.numel() else 0
    out = x.new_zeros(len(x), max(width, 1))
    return out.scatter_add(1, steps.clamp(min=0), torch.where(steps >= 0, x, 0))


def weights(
    scores: Float[Tensor, "N K"], known: Bool[Tensor, "N K"], form: Form, temperature: float
) -> Float[Tensor, "N K"]:
    """Return the weight of each step among the known ones of its response, see :class:`ProcessReward`."""
    if form == "sum":
        return known.to(scores.dtype)
    if form == "softmin":
        # Rows without a step give NaN, which nothing reads.
        return torch.where(known, -scores / temperature, -torch.inf).softmax(-1).nan_to_num(0)
    held = torch.where(known, scores, torch.inf)
    worst = scores.shape[1] - 1 - held.flip(1).argmin(-1)
    return torch.nn.functional.one_hot(worst, scores.shape[1]).to(scores)
