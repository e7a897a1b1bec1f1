"""Weights for what the engine sampled from a policy slightly other than the trainer's own."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.ops import log_ratio

Correction = Literal[
    "none", "recompute", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask", "geometric_mask"
]


def mismatch_weights(
    old: Float[Tensor, "N T"],
    behaviour: Float[Tensor, "N T"],
    mask: Bool[Tensor, "N T"],
    correction: Correction,
    floor: float = 0.0,
    cap: float = 2.0,
) -> Float[Tensor, "N T"]:
    """Weights w_it of token losses that make up for the engine's numerics, detached; 1 outside ``mask``.

    With d = log pi_old - log mu, pi_old the trainer's own log-probabilities before the step's first update and mu the
    engine's (``batch.logprobs``):

    - ``token_truncate``: clip(exp d_t, floor, cap) (truncated importance sampling, TIS);
    - ``token_mask``: exp d_t where it is within [floor, cap], else 0 (masked importance sampling, IcePop);
    - ``sequence_truncate``, ``sequence_mask``: the same of exp(sum_t d_t), for every token of the response;
    - ``geometric_mask``: 1 where exp(mean_t d_t) is within [floor, cap], else 0: no weight, only rejection;
    - ``none``, ``recompute``: 1.

    d is bounded to [-20, 20], and 0 where the engine's log-probability is unknown (NaN): such a token has weight 1.

    Source: F. Yao et al., "Your efficient RL framework secretly brings you off-policy RL training" (2025) for TIS;
    IcePop (2025); the sequence forms as in verl and TRL.
    """
    if correction in ("none", "recompute"):
        return torch.ones_like(old)
    d = log_ratio(old.detach(), behaviour, mask & ~behaviour.isnan())
    if correction.startswith("sequence"):
        d = d.sum(-1, keepdim=True).clamp(-20, 20).expand_as(d)
    elif correction.startswith("geometric"):
        d = (d.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)).expand_as(d)
    weights = d.exp()
    inside = (weights >= floor) & (weights <= cap)
    if correction == "geometric_mask":
        weights = inside.to(weights.dtype)
    elif correction.endswith("mask"):
        weights = torch.where(inside, weights, 0)
    else:
        weights = weights.clamp(floor, cap)
    return torch.where(mask, weights, 1)
