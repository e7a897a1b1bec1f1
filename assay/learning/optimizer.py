"""The optimiser and its learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import torch

from assay.errors import UsageError
from assay.learning.master import MasterAdamW, is_low

Schedule = Literal["constant", "linear", "cosine"]

Kind = Literal["adamw", "adamw8bit"]
"""``adamw``, or ``adamw8bit``: its moments in eight bits (extra ``lowbit``)."""


def make_optimizer(
    parameters: Iterable[torch.nn.Parameter],
    lr: float,
    betas: tuple[float, float],
    weight_decay: float,
    kind: Kind = "adamw",
) -> torch.optim.Optimizer:
    """AdamW over the parameters that require a gradient; no decay on vectors (norms, biases).

    An update of one part in a million, as RL takes, is lost in a bfloat16 weight, whose next value differs by at least
    one part in 256: rounded to nearest, the weight never moves. Here it does, in one of two ways. Bytes for each
    trained parameter, gradient included:

    ===============  =======  ========  =======  =======  ===
    kind, weights    weight   gradient  moments  master   all
    ===============  =======  ========  =======  =======  ===
    adamw float32       4        4         8        -      16
    adamw bfloat16      2        4         8        4      18
    8 bit float32       4        4         2        -      10
    8 bit bfloat16      2        2         2        -       6
    ===============  =======  ========  =======  =======  ===

    - ``adamw`` keeps float32 *master* weights (:class:`assay.learning.master.MasterAdamW`): the steps are those of
      float32, the model holds their rounding.
    - ``adamw8bit`` (:class:`assay.learning.adamw8bit.AdamW8bit`) rounds a bfloat16 weight up or down at random, so that
      it moves by the step on average; its gradients add up in bfloat16.

    Raises:
        UsageError: the kind needs a package that is not installed, or weights other than it can train.
    """
    trainable = [p for p in parameters if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    if kind == "adamw8bit":
        try:
            from assay.learning.adamw8bit import AdamW8bit
        except ImportError as error:
            raise UsageError(
                f'train.optimizer = "adamw8bit" needs torchao: pip install assay[lowbit] ({error})'
            ) from None
        if any(p.dtype == torch.float16 for p in trainable):
            raise UsageError('train.optimizer = "adamw8bit" cannot train float16 weights; set model.dtype = "bfloat16"')
        return AdamW8bit(groups, lr, betas)
    if any(is_low(p) for p in trainable):
        return MasterAdamW(groups, lr, betas)
    return torch.optim.AdamW(groups, lr=lr, betas=betas, fused=True)


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
