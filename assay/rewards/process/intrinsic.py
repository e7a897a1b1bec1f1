"""What turns have led to, paid for by its worth and less each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops.turns import turns_of
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.captions.learner import Captions


@part("reward", "intrinsic")
class IntrinsicReward:
    """r(o_t) / N(o_t)^beta on the last own token of turn t; R_i = 0, so that what the environment pays goes beside it.

    o_t is the caption of what turn t has led to, r(o) what it is worth by the reward model as it is when the batch is
    valued (signal ``captions``), N(o_t) how often the trajectory has met it so far, turn t included. A batch that waits
    (``overlap.staleness``) is valued when it is learned from; what a replay buffer of turns keeps (select ``archer``)
    stays what it was worth then.

    Args:
        captions: see :class:`assay.signals.captions.learner.Captions`; a table of its options, or one made already.
        beta: at least 0; 0 pays each time alike.

    Raises:
        UsageError: ``beta`` below 0.

    Source: ONI (arXiv 2410.23022).
    """

    def __init__(self, captions: Any, beta: float = 3.0):
        if beta < 0:
            raise UsageError(f"reward 'intrinsic': beta {beta:g} must be at least 0")
        self.captions = Captions(**captions) if isinstance(captions, Mapping) else captions
        self.beta = beta

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.captions})

    def __call__(self, batch: Batch) -> Reward:
        worth = batch.signals[self.captions.name].to(batch.rewards.dtype)
        tokens, totals = torch.zeros(batch.mask.shape, dtype=worth.dtype), torch.zeros_like(batch.rewards)
        table = turns_of(batch)
        met, place = dict[int, Counter[str]](), Counter[int]()
        for m, turn in enumerate(table.records):
            row, caption = int(table.sample[m]), self.captions.caption(turn)
            k, place[row] = place[row], place[row] + 1
            if not caption:
                continue
            counts = met.setdefault(int(table.trajectory[m]), Counter())
            counts[caption] += 1
            paid = worth[row, k] / counts[caption] ** self.beta
            totals[row] += paid
            own = batch.mask[row, : turn.end].nonzero()
            if len(own):  # a turn that says nothing is paid on what was said before
                tokens[row, own[-1, 0]] += paid
        return Reward(torch.zeros_like(totals), tokens, judged(batch), {"intrinsic": totals})
