"""The divergence from the reference as a reward whose weight steers it to a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops import Estimator, masked_mean
from assay.registry import part
from assay.rewards.shaping.kl import KLReward


@part("reward", "adaptive_kl")
@dataclass(slots=True)
class AdaptiveKL:
    """r_it = -c KL_it as reward ``kl`` has it, c <- c (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon) after a batch.

    KL is the batch's mean over learnable tokens of active samples, n its number of samples; the batch itself is priced
    at the c before. c is in the checkpoint and logged as the term ``kl_weight``.

    Source: Fine-Tuning Language Models from Human Preferences (arXiv 1909.08593), section 2.2.

    Args:
        target: KL per token to steer to, nats, above 0.
        weight: c at the start, above 0.
        horizon: samples over which c can change by a fifth.
        estimator: see :func:`assay.objectives.kl.kl_estimate`.

    Raises:
        UsageError: ``target``, ``weight`` or ``horizon`` not above 0.
    """

    target: float
    weight: float = 0.001
    horizon: float = 10_000.0
    estimator: Estimator = "k1"
    _c: float = field(init=False)

    needs = KLReward.needs

    def __post_init__(self) -> None:
        if min(self.target, self.weight, self.horizon) <= 0:
            raise UsageError("reward 'adaptive_kl': target, weight and horizon must be above 0")
        self._c = self.weight

    def __call__(self, batch: Batch) -> Reward:
        plain = KLReward(self.estimator)(batch)
        assert plain.tokens is not None
        now, mask = self._c, batch.mask & batch.active[:, None]
        if bool(mask.any()):
            error = float(masked_mean(-plain.tokens, mask)) / self.target - 1
            self._c *= 1 + min(max(error, -0.2), 0.2) * len(batch) / self.horizon
        terms = {**plain.terms, "kl_weight": plain.values + now}
        return Reward(plain.values, now * plain.tokens, terms=terms)

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self._c}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._c = float(state["weight"])
