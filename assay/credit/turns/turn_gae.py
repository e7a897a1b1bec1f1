"""Generalised advantage estimation over turns: a turn is one action, however many tokens it takes."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.credit.gae import GAE
from assay.ops import whiten
from assay.ops.turns import turns_of
from assay.registry import part


@part("credit", "turn_gae")
class TurnGAE(GAE):
    """delta_t = r_t + discount V_{t+1} - V_t, A_t = delta_t + discount decay A_{t+1}: one for all tokens of turn t.

    V_t is the critic's value where turn t begins, on its first own token, 0 after the last turn; r_t as in credit
    ``turn_group``. Where turns are of one token each it is credit ``gae``, which with rewards placed on turns sees the
    same returns, but discounts and decays by token, and takes a critic's value at every token for a baseline. Across a
    turn's ``reset`` nothing flows, nor is it bootstrapped.

    Reads ``batch.signals["values"]`` ``(N, T)`` and leaves what the critic is to learn, A_t + V_t before whitening, on
    every own token of turn t in ``batch.signals["returns"]``.

    Source: arXiv 1506.02438, equation 16, with turns for actions.

    Args:
        critic: the signal ``values`` and how it is learned, see :class:`assay.signals.critic.Critic`.
        discount, decay: gamma and lambda, in [0, 1], per turn.
        whitened: subtract the mean over tokens and divide by their standard deviation.

    Raises:
        UsageError: ``discount`` or ``decay`` outside [0, 1].
    """

    name = "turn_gae"

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch)
        values = batch.signals["values"].detach().to(batch.rewards.dtype)
        own = turns.place >= 0
        # A turn's own tokens stand together: the first is where its place is new.
        before = torch.nn.functional.pad(turns.place[:, :-1], (1, 0), value=-1) if turns.place.shape[1] else turns.place
        first = own & (turns.place != before)
        here = turns.sums(torch.where(first, values, 0))
        after = torch.nn.functional.pad(here[1:], (0, 1))[: len(here)]
        reset = torch.tensor([turn.reset for turn in turns.records], dtype=torch.bool)
        delta = turns.rewards + self.discount * torch.where(turns.last | reset, 0, after) - here
        advantages = turns.returns(delta, self.discount * self.decay, reset)
        batch.signals["returns"] = torch.where(own, turns.on_tokens(advantages + here, batch), 0)
        use = batch.mask & batch.active[:, None]
        placed = turns.on_tokens(advantages, batch)
        return whiten(placed, use) if self.whitened else placed
