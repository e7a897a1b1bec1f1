"""Which responses of a group to prefer to which others: pairs made of scored samples, under constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.registry import part

NEAR = 1e-6
"""Scores that differ by less are equal, and bounds are met: a margin of 0.1 is 0.0999999 in single precision."""
ID, OVER, WORTH = "pair_id", "pair_over", "pair_worth"
"""Signals that say what was picked: ``(N,)`` a number for each sample, ``(N, M)`` those it is preferred to, else -1.

The last, which need not be there, is ``(N, M)`` the weight of each such pair, with a mean of 1 over the step's pairs.
"""


@part("select", "pairs")
@dataclass(frozen=True, slots=True)
class Pairs:
    """Weight 1 for the samples of the pairs picked in their group, else 0; objective ``picked_pairs`` learns the pairs.

    With s a sample's score and T its learnable tokens, a pair (w, l) of one group may be picked if

        s_w > s_l, or, with ``better="verdict"``, w was judged right and l wrong;
        s_w - s_l >= margin;   |T_w - T_l| / min(T_w, T_l) <= length

    and of these the first ``count`` of the group are, those that tie with the last of them too, so that the order of
    samples plays no part. A sample may be in several pairs. Inactive and empty samples are in none.

    Args:
        by: s: ``reward``, or the name of one of its terms.
        better: see above.
        margin: ``None`` asks for none.
        length: greatest relative difference of lengths; ``None`` for any.
        count: pairs of a group; ``None`` for all that may be picked.
        rank: which come first: the largest ``margin`` s_w - s_l, the largest ``gap`` |s_w - s_l|, or the largest
            ``total`` s_w + s_l.

    Raises:
        UsageError: an option out of range.
        RunError: the reward has no such term, or a score that counts is not finite.
    """

    by: str = "reward"
    better: Literal["score", "verdict"] = "score"
    margin: float | None = None
    length: float | None = None
    count: int | None = 1
    rank: Literal["margin", "gap", "total"] = "margin"

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise UsageError(f"select 'pairs': count {self.count} must be at least 1")
        if self.length is not None and self.length < 0:
            raise UsageError(f"select 'pairs': length {self.length:g} must be at least 0")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return pick(batch, self.picked(batch))

    def picked(self, batch: Batch) -> Bool[Tensor, "N N"]:
        """Return which pairs are picked: row w, column l."""
        out = torch.zeros(len(batch), len(batch), dtype=torch.bool)
        scores = self.scores(batch)
        lengths = batch.lengths
        use = batch.active & (lengths > 0)
        if not bool(scores[use].isfinite().all()):
            row = int((use & ~scores.isfinite()).nonzero()[0, 0])
            raise RunError(f"select 'pairs': {self.by} of row {row} (task {batch.tasks[row].id}) is {scores[row]:g}")
        passed = [v.passed for v in batch.verdicts]
        right = torch.tensor([p is True for p in passed], dtype=torch.bool)
        wrong = torch.tensor([p is False for p in passed], dtype=torch.bool)
        for group in batch.group[use].unique():
            rows = ((batch.group == group) & use).nonzero()[:, 0]
            s, tokens = scores[rows], lengths[rows].to(scores.dtype)
            margin = s[:, None] - s[None]
            may = right[rows][:, None] & wrong[rows][None] if self.better == "verdict" else margin > NEAR
            if self.margin is not None:
                may = may & (margin >= self.margin - NEAR)
            if self.length is not None:
                shorter = torch.minimum(tokens[:, None], tokens[None])
                may = may & ((tokens[:, None] - tokens[None]).abs() <= (self.length + NEAR) * shorter)
            by = {"margin": margin, "gap": margin.abs(), "total": s[:, None] + s[None]}[self.rank]
            out[rows[:, None], rows[None]] = may & (by >= self._last(by[may]) - NEAR)
        return out

    def _last(self, ranks: Float[Tensor, "P"]) -> float:
        """The rank of the last pair there is room for."""
        if self.count is None or len(ranks) <= self.count:
            return -math.inf
        return float(ranks.topk(self.count).values[-1])

    def scores(self, batch: Batch) -> Float[Tensor, "N"]:
        """Return s."""
        if self.by == "reward":
            return batch.rewards
        if self.by not in batch.reward_terms:
            known = ", ".join(sorted(batch.reward_terms)) or "none"
            raise RunError(f"select 'pairs': the reward has no term {self.by!r}; its terms: {known}")
        return batch.reward_terms[self.by]


def pick(batch: Batch, picked: Bool[Tensor, "N N"], worth: Float[Tensor, "N N"] | None = None) -> Float[Tensor, "N"]:
    """Leave in the batch's signals which pairs are picked (row over column); return weight 1 for whoever is in one.

    Args:
        batch: gets the signals.
        picked: which.
        worth: weights of the pairs, made to have a mean of 1 over those picked.
    """
    better, worse = picked.nonzero(as_tuple=True)  # by rows
    wins = picked.sum(1)
    place = torch.arange(len(better)) - (wins.cumsum(0) - wins)[better]
    over = torch.full((len(batch), int(wins.max()) if len(batch) else 0), -1, dtype=torch.int64)
    over[better, place] = worse
    batch.signals[ID], batch.signals[OVER] = torch.arange(len(batch)), over
    batch.whole |= {OVER}
    if worth is not None:
        own = worth[better, worse]
        table = batch.rewards.new_ones(over.shape)
        table[better, place] = own / own.mean() if len(own) else own
        batch.signals[WORTH] = table
        batch.whole |= {WORTH}
    return (picked.any(0) | picked.any(1)).to(batch.rewards.dtype)
