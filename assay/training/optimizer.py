"""The optimiser and its learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import torch

Schedule = Literal["constant", "linear", "cosine"]


def make_optimizer(
    parameters: Iterable[torch.nn.Parameter], lr: float, betas: tuple[float, float], weight_decay: float
) -> torch.optim.Optimizer:
    """AdamW over the parameters that require a gradient; no decay on vectors (norms, biases)."""
    trainable = [p for p in parameters if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=lr, betas=betas, fused=True)


def learning_rate(peak: float, step: int, total: int, ramp: int, schedule: Schedule) -> float:
    """Learning rate of optimiser step ``step`` (0-based): a linear ramp, then constant or down to zero at ``total``."""
    if step < ramp:
        return peak * (step + 1) / ramp
    share = min(1.0, (step - ramp) / max(1, total - ramp))
    if schedule == "linear":
        return peak * (1 - share)
    if schedule == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * share))
    return peak
