"""One loss for two kinds of decisions: a thought as a whole, and each step of the drawing after it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import log_ratio, row_mean
from assay.policies.flow.thinking import drawing_steps
from assay.registry import part


@part("objective", "thought_and_steps")
@dataclass(frozen=True, slots=True)
class ThoughtAndSteps:
    """The mean over samples of

        w min(s A, clip(s, 1 - low, 1 + high) A) + 1/S sum_t min(rho_t A_t, clip(rho_t, 1 - step, 1 + step) A_t),

    less than zero: s the exponential of the mean log-ratio over a thought's tokens, rho_t the ratio of one of the S
    noisy steps after it. w = 1: a thought weighs as much as all of these; w = 1/S with ``as_step``: as one of them.

    Args:
        low, high: of a thought's ratio.
        step: of a step's.
        as_step: see above.

    Raises:
        UsageError: a width that is not above 0.

    Source: AlphaGRPO (arXiv 2605.12495) and a public copy of its code.
    """

    low: float = 0.2
    high: float = 0.28
    step: float = 1e-5
    as_step: bool = False

    def __post_init__(self) -> None:
        if min(self.low, self.high, self.step) <= 0:
            raise UsageError("objective 'thought_and_steps': low, high and step are widths above 0")

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        mask = batch.mask & batch.active[:, None]
        steps = drawing_steps(batch).to(mask.device) & mask
        words = mask & ~steps
        gap = log_ratio(torch.where(mask, logprobs, 0), batch.logprobs, mask)
        count = steps.sum(-1).clamp(min=1)

        def surrogate(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
            return torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)

        advantages = torch.where(mask, batch.advantages, 0).to(gap.dtype)
        whole = row_mean(gap, words)[:, 0].exp()
        said = surrogate(whole, row_mean(advantages, words)[:, 0], self.low, self.high) * words.any(-1)
        ratio = gap.exp()
        drawn = (surrogate(ratio, advantages, self.step, self.step) * steps).sum(-1)
        samples = batch.totals.sequences if batch.totals is not None else float(mask.any(-1).sum())
        value = -((said / count if self.as_step else said) + drawn / count).sum() / max(samples, 1)
        with torch.no_grad():
            outside = ((ratio - 1).abs() > self.step)[steps].float()
            metrics = {
                "ratio/thought": float(whole[words.any(-1)].mean()) if bool(words.any()) else 1.0,
                "clipped/steps": float(outside.mean()) if len(outside) else 0.0,
            }
        return Loss(value, metrics)
