"""The divergence from the reference policy, as a reward on tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.ops import IMPOSSIBLE, Estimator, kl_estimate
from assay.registry import part


@part("reward", "kl")
@dataclass(frozen=True, slots=True)
class KLReward:
    """r_it = -(estimate of KL(pi_old || pi_ref) from token t), on every learnable token; R_i = 0.

    A term of a weighted sum, whose weight is the usual beta: ``{name = "weighted", terms = {verdict = "verdict", kl =
    "kl"}, weights = {kl = 0.05}}``. As a reward k1 is the right estimator: its expected gradient is that of KL(pi ||
    pi_ref), which it has not as a loss. The credits ``reinforce++``, ``gae`` and ``remax`` sum it from each token on,
    the others over the whole response.

    Source: InstructGPT (arXiv 2203.02155), equation 2.

    Args:
        estimator: ``k1``, ``k2`` or ``k3``, see :func:`assay.objectives.kl.kl_estimate`.
    """

    estimator: Estimator = "k1"

    needs = frozenset({"policy_logprobs", "reference_logprobs"})

    def __call__(self, batch: Batch) -> Reward:
        own, reference = (
            torch.where(batch.mask, batch.signals[name], 0).clamp(min=IMPOSSIBLE)
            for name in ("policy_logprobs", "reference_logprobs")
        )
        tokens = torch.where(batch.mask, -kl_estimate(own, reference, self.estimator), 0).to(batch.rewards.dtype)
        return Reward(torch.zeros_like(batch.rewards), tokens=tokens, terms={"kl": tokens.sum(-1)})
