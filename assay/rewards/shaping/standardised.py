"""A reward in units of its own spread."""

from __future__ import annotations

from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.ops import group_mean, group_std
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "standardised")
class StandardisedReward(Around):
    """R_i = (r_i - mean) / sd over the samples that have a reward; 0 where all rewards are equal.

    To standardise rewards rather than advantages leaves the credit free: with ``reinforce``, which subtracts nothing,
    A_i = R_i. Rewards on tokens pass through as they are.

    Args:
        inner: the reward r: a part (name, table or part already made).
        over: mean and deviation over the ``batch``, or over the responses to a ``prompt``.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
    """

    def __init__(self, inner: Any = "verdict", over: Literal["batch", "prompt"] = "batch", ddof: Literal[0, 1] = 1):
        super().__init__({"raw": inner})
        self.over, self.ddof = over, ddof

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        raw, valid = found["raw"], valid_in(found, batch)
        group = batch.prompt_group if self.over == "prompt" else torch.zeros_like(batch.prompt_group)
        deviation = group_std(raw.values, group, valid, self.ddof)
        centred = raw.values - group_mean(raw.values, group, valid)
        values = torch.where(valid & (deviation > 0), centred / deviation, 0)
        return Reward(values, raw.tokens, valid, {**terms_of(found), "standardised": values})
