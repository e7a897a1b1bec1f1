"""What single turns earned."""

from __future__ import annotations

from typing import Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Episode, Turn


@part("reward", "turns")
class TurnRewards:
    """r_it of the turns t of response i, on each turn's last own token; R_i = 0, so that a verdict goes beside it.

    Args:
        of: what: ``reward``, the environment's; ``verdict``, the score that an oracle gave the action; ``valid``,
            1 for a turn whose action could be taken; ``calls``, how many tool calls could be read; else a number that
            the environment has noted of the turn by that name, or a part of the oracle's verdict. A turn without it
            has no reward, and nor has one whose oracle abstains.
        discount: r_it counts discount^t of itself; in (0, 1].
        reduce: ``mean`` divides by the number of turns that have such a reward.
        placed: on tokens; otherwise R_i is their sum.

    Raises:
        UsageError: ``discount`` out of range, or nothing to look for; when called, a reward that is no finite number.
    """

    def __init__(
        self,
        of: str = "reward",
        discount: float = 1.0,
        reduce: Literal["sum", "mean"] = "sum",
        placed: bool = True,
    ):
        if not of or not 0 < discount <= 1:
            raise UsageError(f"reward 'turns': needs to know of what, and a discount in (0, 1], not {discount:g}")
        self.of, self.discount, self.reduce, self.placed = of, discount, reduce, placed

    def __call__(self, batch: Batch) -> Reward:
        totals, tokens = torch.zeros_like(batch.rewards), torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        for i, episode in enumerate(batch.episodes):
            found = turn_rewards(episode, self.of)
            share = 1 / len(found) if self.reduce == "mean" and found else 1.0
            for t, (turn, value) in enumerate(found):
                worth = share * self.discount**t * value
                totals[i] += worth
                own = batch.mask[i, : turn.end].nonzero()
                if len(own):  # a turn that says nothing is paid on what was said before
                    tokens[i, own[-1, 0]] += worth
        if not bool(totals.isfinite().all()):
            row = int((~totals.isfinite()).nonzero()[0, 0])
            raise UsageError(f"reward 'turns': {self.of!r} of row {row} (task {batch.tasks[row].id}) is not finite")
        values = torch.zeros_like(totals) if self.placed else totals
        return Reward(values, tokens if self.placed else None, judged(batch), {self.of: totals})


def turn_rewards(episode: Episode, name: str) -> list[tuple[Turn, float]]:
    """Return each turn that has a reward of this name, and the reward, in order."""
    found = [(turn, turn_value(turn, name)) for turn in own_turns(episode)]
    return [(turn, value) for turn, value in found if value is not None]


def turn_value(turn: Turn, name: str) -> float | None:
    """Return what :class:`TurnRewards` finds of a turn by a name."""
    if name == "reward":
        return turn.reward
    if name == "valid":
        return float(turn.valid)
    if name == "calls":
        return float(sum(not call.problem for call in turn.calls))
    if name in turn.info:
        return float(turn.info[name])
    if turn.verdict is None or turn.verdict.passed is None:
        return None
    return turn.verdict.score if name == "verdict" else turn.verdict.parts.get(name)
