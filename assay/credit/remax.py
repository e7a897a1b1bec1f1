"""ReMax: a response is compared with the greedy response to the same prompt."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import group_count, group_mean
from assay.registry import part
from assay.returns import placed_rewards, returns_to_go


@part("credit", "remax")
@dataclass(frozen=True, slots=True)
class ReMax:
    """A_it = (rewards from token t on) - R(greedy response); R_i - R(greedy response) where no token has a reward.

    The greedy response's reward comes from ``batch.signals["baseline_rewards"]`` ``(N,)`` if there (NaN where there is
    none), else from the episodes of the prompt's group with ``meta["role"] == "baseline"`` (their mean). Such episodes
    are judged but not learned from: a rollout makes them with ``mask`` false everywhere, so that they count in no
    denominator; here their advantages are zero in any case. So are those of samples whose greedy response has no
    reward.

    Source: ReMax (arXiv 2310.10505).

    Raises:
        UsageError: neither the signal nor any such episode is there.
    """

    rollout = "greedy_baseline"

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "greedy response", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        placed = placed_rewards(batch)
        if "baseline_rewards" in batch.signals:
            baseline = batch.signals["baseline_rewards"].to(batch.rewards.dtype)
            greedy, known = torch.zeros_like(batch.active), ~baseline.isnan()
        else:
            greedy = torch.tensor([e.meta.get("role") == "baseline" for e in batch.episodes], dtype=torch.bool)
            if len(batch) and not bool(greedy.any()):
                raise UsageError(
                    "credit 'remax' needs a greedy response for each prompt: use a rollout that adds one "
                    '(an episode with meta role "baseline"), or choose credit = "rloo"'
                )
            whole = batch.rewards + (0 if batch.token_rewards is None else _sums(batch))
            baseline = group_mean(whole, batch.prompt_group, greedy & batch.valid)
            known = group_count(batch.prompt_group, greedy & batch.valid, whole.dtype) > 0
        use = batch.mask & (batch.active & known & ~greedy)[:, None]
        return torch.where(use, returns_to_go(placed, batch.mask) - baseline[:, None], 0)


def _sums(batch: Batch) -> Float[Tensor, "N"]:
    """Rewards on tokens, summed over whole responses: a greedy response has no learnable tokens."""
    assert batch.token_rewards is not None
    lengths = torch.tensor([len(e.tokens) for e in batch.episodes])
    inside = torch.arange(batch.mask.shape[1]) < lengths[:, None]
    return torch.where(inside, batch.token_rewards, 0).sum(-1)
