"""A length penalty that only prompts which are solved well pay."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops import group_count, group_mean, group_std
from assay.registry import part
from assay.rewards.length.overlong import response_lengths


@part("reward", "gated_length")
@dataclass(frozen=True, slots=True)
class GatedLength:
    """R_i = 1[right] (1 - alpha sigmoid((T_i - mu) / (sd + 1e-7))) on gated prompts, 1[right] on all others.

    mu and sd are mean and population standard deviation of the tokens of the prompt's right responses. Gated are the
    floor(share B) of the batch's B prompts with the highest accuracy (ties go to the earlier one), at least one where
    share is above 0, of those that have a right response at all; or with ``threshold`` every prompt whose accuracy
    reaches it. Prompts without a verdict count in B but are never gated.

    Source: GRPO-lambda (arXiv 2505.18086), with the penalty of "Training Language Models to Reason Efficiently" (arXiv
    2502.04463).

    Args:
        share: in [0, 1].
        alpha: in [0, 1]; below 1 every right response is worth more than a wrong one.
        threshold: in (0, 1], or ``None``.

    Raises:
        UsageError: an option out of range.
    """

    share: float = 0.2
    alpha: float = 0.2
    threshold: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 0 <= self.alpha <= 1:
            raise UsageError(f"reward 'gated_length': share {self.share:g} and alpha {self.alpha:g} must be in [0, 1]")
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"reward 'gated_length': threshold {self.threshold:g} must be in (0, 1]")

    def __call__(self, batch: Batch) -> Reward:
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        judged = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        lengths, group = response_lengths(batch), batch.prompt_group
        gated = self.gate(batch, right, judged)
        spread = group_std(lengths, group, right, ddof=0) + 1e-7
        penalty = self.alpha * torch.sigmoid((lengths - group_mean(lengths, group, right)) / spread)
        verdict = right.to(lengths.dtype)
        values = verdict * torch.where(gated, 1 - penalty, 1)
        return Reward(values, valid=judged, terms={"verdict": verdict, "gated": gated.to(lengths.dtype)})

    def gate(self, batch: Batch, right: Bool[Tensor, "N"], judged: Bool[Tensor, "N"]) -> Bool[Tensor, "N"]:
        """Say of each sample whether its prompt pays for length."""
        accuracy = group_mean(right.to(batch.rewards.dtype), batch.prompt_group, judged)
        solved = group_count(batch.prompt_group, right, batch.rewards.dtype) > 0
        if self.threshold is not None:
            return solved & (accuracy >= self.threshold - 1e-6)
        prompts = batch.prompt_group.unique()
        ranks: Float[Tensor, "B"] = (
            torch.stack([accuracy[batch.prompt_group == p][0] for p in prompts]) if len(prompts) else batch.rewards
        )
        count = max(int(self.share * len(prompts) + 1e-9), int(self.share > 0))
        best = prompts[ranks.argsort(descending=True, stable=True)][:count]
        return solved & torch.isin(batch.prompt_group, best)
