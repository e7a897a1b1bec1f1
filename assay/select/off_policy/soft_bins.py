"""Targets of values whose softmax is the policy, from steps on record and from play."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.select.off_policy.offline import Recorded
from assay.signals.base import Models
from assay.signals.transitions.columns import Drawn


@part("select", "soft_bins")
class SoftBinTargets(Recorded):
    """y = r + discount (1 - done) min(V'_1, V'_2)(s'), V' of a copy of the policy that follows it slowly.

    Half of what is drawn is of demonstrations, where the record has any. The policy is one of bins
    (:class:`~assay.policies.control.binned.BinnedPolicy`), and its values are learned by objective ``soft_bins``.

    Args:
        data, offline, updates, batch, capacity: see :class:`~assay.select.off_policy.offline.Recorded`.
        discount: in [0, 1].
        rate: in (0, 1]: slow <- (1 - rate) slow + rate policy, after each update.

    Raises:
        UsageError: an option out of range; a policy of other decisions.

    Source: ARSQ (arXiv 2502.00288) and its authors' code.
    """

    half = True

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        offline: int = 0,
        updates: int = 1,
        batch: int = 256,
        capacity: int = 100_000,
        discount: float = 0.99,
        rate: float = 0.02,
    ):
        super().__init__(data, offline, updates, batch, capacity)
        if not 0 <= discount <= 1 or not 0 < rate <= 1:
            raise UsageError(f"select 'soft_bins': discount {discount:g} in [0, 1], rate {rate:g} in (0, 1]")
        self.discount, self.rate = discount, rate

    def check(self, policy: Any) -> None:
        super().check(policy)
        if "twin_q" not in policy.quantities:
            raise UsageError("select 'soft_bins' learns values of bins; set model.control.decisions = bins")

    def begin(self, models: Models) -> None:
        self.slow = self.policy.twin()
        self.slow.module.requires_grad_(False)

    def learned(self, drawn: Drawn, rng: np.random.Generator, told: list[dict[str, float]]) -> Batch:
        with torch.no_grad():
            after = self.slow.values(drawn.after).min(0).values
        target = drawn.rewards + self.discount * torch.where(drawn.done, 0.0, after)
        batch = drawn.batch(self.policy)
        for name, value in (("target", target), ("demonstrated", drawn.expert)):
            batch.signals[name] = value.repeat_interleave(self.policy.per_step)[None].cpu()
        told.append({"target/mean": float(target.mean())})
        return batch

    @torch.no_grad()
    def after(self) -> None:
        own = self.policy.module.parameters()
        for slow, fast in zip(self.slow.module.parameters(), own, strict=True):
            slow.lerp_(fast, self.rate)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "slow": self.slow.module.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.slow.module.load_state_dict(state["slow"])
