"""Process and outcome rewards, each less what siblings earn, added as returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import group_count, group_sum, outcome, row_mean, whiten
from assay.registry import build, part
from assay.returns import returns_to_go
from assay.signals.base import Signal


@part("credit", "prime")
@dataclass(frozen=True, slots=True)
class ProcessOutcomeRLOO:
    """A_it = process sum_{u >= t} discount^(u - t) (r_iu - b_i) + outcome (R_i - mean_{j != i} R_j).

    r_it = beta q_it is the implicit reward of a token, b_i = mean_{j != i} mean_t r_jt what siblings earn per token,
    and R_i what the response earned. All are over learnable tokens of the active samples of a group; a sample without
    siblings has advantage zero.

    With ``form="code"``, as in the authors' implementation: r = q / max |sum_{u >= t} q_iu| over the batch, both parts
    are x K / (K - 1) - sum_j m_j / (K - 1), in which a sample's own mean is part of the baseline and its token is
    scaled instead (for R that is the same), and the sum is whitened over all learnable tokens of the batch.

    Args:
        implicit: the signal ``implicit_reward``, and how it learns, see
            :class:`assay.signals.implicit_reward.ImplicitReward`.
        process, outcome: weights.
        discount: of process rewards per token, in [0, 1].
        form: ``paper`` or ``code``.
        level_of: ``token``: every token is a step; ``response``: a response's process rewards are placed on its last.

    Raises:
        UsageError: a weight below 0, or a discount outside [0, 1].

    Source: PRIME (arXiv 2502.01456), equation 5, and its implementation.
    """

    implicit: Any = "implicit_reward"
    process: float = 1.0
    outcome: float = 1.0
    discount: float = 1.0
    form: Literal["paper", "code"] = "paper"
    level_of: Literal["token", "response"] = "token"
    _signal: Any = field(init=False, repr=False, compare=False)

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_signal", build("signal", self.implicit))
        if self.process < 0 or self.outcome < 0 or not 0 <= self.discount <= 1:
            raise UsageError(
                "credit 'prime': needs process >= 0, outcome >= 0 and discount in [0, 1], not "
                f"{self.process:g}, {self.outcome:g} and {self.discount:g}"
            )

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self._signal})

    @property
    def summary(self) -> dict[str, str]:
        whitened = "batch std over tokens" if self.form == "code" else "none"
        return {"baseline": "mean of the siblings, per token and of outcomes", "normalisation": whitened}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        mask = batch.mask & batch.active[:, None]
        siblings = group_count(batch.group, batch.active, batch.rewards.dtype) - 1
        mask = mask & (siblings > 0)[:, None]
        rewards = self._centred(self._rewards(batch, mask), mask, batch, siblings)
        earned = outcome(batch)
        others = (group_sum(earned, batch.group, batch.active) - earned) / siblings.clamp(min=1)
        returns = self.process * returns_to_go(rewards, mask, self.discount) + self.outcome * (earned - others)[:, None]
        return whiten(returns, mask) if self.form == "code" else torch.where(mask, returns, 0)

    def _rewards(self, batch: Batch, mask: Tensor) -> Float[Tensor, "N T"]:
        """Process rewards by token."""
        q = torch.where(mask, batch.signals["implicit_reward"].to(batch.rewards.dtype), 0)
        if self.level_of == "response":
            left = returns_to_go(mask.to(q.dtype), mask)
            q = torch.where(left == 1, q.sum(-1, keepdim=True), 0)
        if self.form == "paper":
            return self._signal.beta * q
        return q / returns_to_go(q, mask).abs().max() if q.any() else q

    def _centred(self, r: Tensor, mask: Tensor, batch: Batch, siblings: Tensor) -> Float[Tensor, "N T"]:
        """Rewards less the baseline, for tokens in ``mask``."""
        means = row_mean(r, mask)[:, 0]
        total, per = group_sum(means, batch.group, batch.active), siblings.clamp(min=1)
        if self.form == "paper":
            return r - ((total - means) / per)[:, None]
        return r * ((per + 1) / per)[:, None] - (total / per)[:, None]
