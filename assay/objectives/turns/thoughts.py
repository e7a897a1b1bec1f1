"""The clipped surrogate with a turn as one action, in whose probability thoughts count less; and thoughts imitated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate, clip_fraction, clipped
from assay.objectives.policy_loss import Ratios
from assay.ops import Aggregation
from assay.registry import part
from assay.rollout.turns.corrected import THOUGHT
from assay.rollout.turns.labelling import LABEL


def thought_tokens(batch: Batch) -> Bool[Tensor, "N T"]:
    """Tokens in a span of kind ``thought``."""
    out = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for row, episode in zip(out, batch.episodes, strict=True):
        for span in episode.spans:
            if span.kind == THOUGHT:
                row[span.start : span.end] = True
    return out.to(batch.mask.device)


@part("objective", "guided_thought")
@dataclass(frozen=True, slots=True)
class GuidedThought(ClippedSurrogate):
    """On what was played, a sum over turns k of

        -min(rho_k A_k, clip(rho_k, 1 - clip_low, 1 + clip_high) A_k),    rho_k = exp(sum_t w_t (log pi - log pi_old))

    with w_t = ``thought`` on the tokens of the turn's thought and 1 on its others; on labels ``imitation`` times the
    mean over tokens of -log pi, without advantage. Each is a mean over responses.

    An advantage is read on a turn's tokens, and is to be the same on all of them, as credit ``turn_gae`` makes it.

    Source: GTR (arXiv 2503.08525) and its authors' code; the weight of thoughts is RL4VLM's.

    Args:
        thought: lambda, in [0, 1].
        imitation: weight of labels, at least 0.

    Raises:
        UsageError: either out of range, or another aggregation.
    """

    clip_low: float = 0.1
    clip_high: float = 0.1
    aggregation: Aggregation = "sequence_sum"
    thought: float = 0.5
    imitation: float = 1.0

    zero_advantage_is_idle = False

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if not 0 <= self.thought <= 1 or self.imitation < 0 or self.aggregation != "sequence_sum":
            raise UsageError(
                f"objective 'guided_thought': thought {self.thought:g} must be in [0, 1], imitation {self.imitation:g} "
                "at least 0, and the aggregation sequence_sum"
            )

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        labels = torch.tensor([bool(e.meta.get(LABEL)) for e in r.batch.episodes], device=r.mask.device)[:, None]
        weight = torch.where(thought_tokens(r.batch), self.thought, 1.0).to(r.log_ratio)
        turn = r.batch.turn.clamp(min=0)
        count = int(turn.max()) + 1 if turn.numel() else 1
        zeros = torch.zeros(len(turn), count, dtype=r.log_ratio.dtype, device=turn.device)
        gaps = zeros.scatter_add(1, turn, torch.where(r.mask, weight * r.log_ratio, 0))
        length = zeros.scatter_add(1, turn, r.mask.to(zeros.dtype)).clamp(min=1).gather(1, turn)
        ratio = gaps.clamp(-20, 20).exp().gather(1, turn)
        played = clipped(ratio, r.advantages, self.clip_low, self.clip_high)
        share = clip_fraction(ratio.detach(), r.advantages, r.mask & ~labels, self.clip_low, self.clip_high)
        loss = torch.where(labels, -self.imitation * r.logprobs, played) / length
        return loss, {"clip_fraction": share}

    def words(self) -> tuple[str, str]:
        return "turn, thoughts weighed", f"[{1 - self.clip_low:g}, {1 + self.clip_high:g}]"
