"""What a turn has found out: how much likelier it has made the reference answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.turns.likelihood import TurnLikelihood, gains


@part("reward", "information_gain")
@dataclass(frozen=True, slots=True)
class InformationGain:
    """r_it = p_{t+1} - p_t on the last own token of every turn but the last; R_i = 0: an answer's goes beside it.

    p_t is the likelihood of the reference before turn t, see
    :class:`~assay.signals.turns.likelihood.TurnLikelihood`: its mean over the reference's tokens is geometric. What
    cannot be scored has gained nothing. Along an episode the gains add up to what is known before the last turn less
    what was known at first.

    Source: IGPO (arXiv 2510.14967).

    Args:
        likelihood: how the reference is scored.
        logarithm: gains of mean log-probabilities instead.
    """

    likelihood: TurnLikelihood = field(default_factory=TurnLikelihood)
    logarithm: bool = False

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.likelihood})

    def __call__(self, batch: Batch) -> Reward:
        turns = [own_turns(episode) for episode in batch.episodes]
        found = gains(batch.signals[self.likelihood.name], [len(t) for t in turns], self.logarithm)
        tokens = torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        for i, row in enumerate(turns):
            for t, turn in enumerate(row[:-1]):
                own = batch.mask[i, : turn.end].nonzero()
                if len(own):  # a turn that says nothing is paid on what was said before
                    tokens[i, own[-1, 0]] += found[i, t]
        total = tokens.sum(-1)
        return Reward(torch.zeros_like(total), tokens, judged(batch), {"information_gain": total})
