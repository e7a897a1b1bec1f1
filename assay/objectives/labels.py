"""What losses share that take the reward as a label of the response and the policy's own log-ratio as its score."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.objectives.preference import By, quality
from assay.ops import IMPOSSIBLE, log_ratio, row_mean

Score = Literal["sum", "mean"]

FAR = 1e4
"""A token's log-ratio is bounded to this: the scores of a classifier need no tighter bound to be finite."""


def labels(batch: Batch, by: By, threshold: float) -> Bool[Tensor, "N"]:
    """Whether a response counts as right: its reward is above ``threshold``, or with ``by="verdict"`` it passed."""
    return quality(batch, by) > (threshold if by == "reward" else 0.5)


def counted(batch: Batch) -> Bool[Tensor, "N"]:
    """Samples that are learned from: active, with learnable tokens."""
    return batch.active & (batch.lengths > 0)


def response_score(logprobs: Float[Tensor, "N T"], batch: Batch, score: Score) -> Float[Tensor, "N"]:
    """Sum, or mean, over learnable tokens of log pi - log pi_old, with a gradient; zero for samples not active.

    pi_old are the log-probabilities recorded while sampling; where they are not known the log-ratio is 0 with the
    gradient of log pi.
    """
    mask = batch.mask & batch.active[:, None]
    here = torch.where(mask, logprobs, 0).clamp(min=IMPOSSIBLE)
    gap = log_ratio(here, batch.logprobs, mask, FAR)
    return gap.sum(-1) if score == "sum" else row_mean(gap, mask)[:, 0]
