"""Credit of turns that are compared with others of their kind, beside the trajectory's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.groups import group_mean, group_std
from assay.ops.turns import Kind, Singleton, Turns, normalise, numbered, turns_of
from assay.registry import part


@part("credit", "tagged")
@dataclass(frozen=True, slots=True)
class Tagged:
    """A_t = alpha A_traj + (1 - alpha) A_tag for every token of turn t, or in another form A_traj + alpha A_tag.

        A_traj = (R_i - mean R) / (std R + epsilon) - penalty [turn t has no tag]
        A_tag  = (r_t - mean r) / (std r + epsilon)   over the turns of the same task and tag

    R is the reward of a response, r_t what was placed on the turn's own tokens. Turns without a tag, which do not keep
    the form, are a kind of their own. With alpha = 1, no penalty and the mixed form it is GRPO's advantage of R alone.

    Source: RLVMR (arXiv 2507.22844): the mix with alpha = 0.5; its code adds, and takes the mean and deviation of R
    over the turns of all trajectories, of which longer ones have more.

    Args:
        alpha: of the trajectory's advantage (``mix``), or of the kind's (``sum``).
        form: ``mix`` or ``sum``.
        statistics: of R: over each ``trajectory`` once, or over every ``turn``.
        penalty: of a turn that has no tag.
        scaled: divide by the standard deviations.
        singleton: of a turn that is alone with its tag: ``zero``, or r itself (``keep_raw``, the code's).
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: added to it.

    Raises:
        UsageError: an option out of range.
    """

    alpha: float = 0.5
    form: Literal["mix", "sum"] = "mix"
    statistics: Literal["trajectory", "turn"] = "trajectory"
    penalty: float = 0.1
    scaled: bool = True
    singleton: Singleton = "keep_raw"
    ddof: int = 1
    epsilon: float = 1e-6

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        if self.alpha < 0 or (self.form == "mix" and self.alpha > 1) or self.penalty < 0:
            raise UsageError(
                f"credit 'tagged': alpha {self.alpha:g} must be in [0, 1], of a sum at least 0, and penalty "
                f"{self.penalty:g} at least 0"
            )

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch)
        if not len(turns):
            return torch.zeros_like(batch.advantages)
        dtype = batch.rewards.dtype
        earned = torch.zeros(len(turns), dtype=dtype)
        if batch.token_rewards is not None:
            earned = turns.sums(torch.where(batch.mask, batch.token_rewards, 0)).to(dtype)
        kind: Kind = "center_std" if self.scaled else "center"
        by_tag = normalise(earned, kinds(turns), turns.active, kind, self.ddof, self.epsilon, self.singleton)
        whole = self._trajectory(batch, turns)
        mixed = self.alpha * whole + (1 - self.alpha) * by_tag if self.form == "mix" else whole + self.alpha * by_tag
        return turns.on_tokens(mixed, batch)

    def _trajectory(self, batch: Batch, turns: Turns) -> Float[Tensor, "M"]:
        """Return the advantage of each turn's trajectory, less its penalty."""
        worth = batch.rewards[turns.sample]
        counted = turns.active & (turns.last if self.statistics == "trajectory" else turns.played)
        out = worth - group_mean(worth, turns.group, counted)
        if self.scaled:
            out = out / (group_std(worth, turns.group, counted, self.ddof) + self.epsilon)
        unformed = torch.tensor([turn.tag is None for turn in turns.records])
        return torch.where(turns.active, out - self.penalty * unformed, 0)


def kinds(turns: Turns) -> Tensor:
    """Return numbers that are equal for turns of the same task and tag."""
    return numbered([(g, t.tag) for g, t in zip(turns.group.tolist(), turns.records, strict=True)])
