"""Turns compared with their like: at the same place, in the same state, of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import By, Kind, Singleton, Turns, normalise, turns_of
from assay.registry import part


@part("credit", "turn_group")
@dataclass(frozen=True, slots=True)
class TurnGroup:
    """A_it = weight U_it + episode E_i on every token of turn t of trajectory i.

    With N the comparison of :func:`assay.ops.turns.normalise` among turns of the same ``by``, U_it is

    - ``sums = "before"``: N(G)_it of the returns G_it = sum_{k >= t} discount^(k - t) r_ik;
    - ``sums = "after"``: sum_{k >= t} discount^(k - t) N(r)_ik;
    - ``sums = "none"``: N(r)_it, which sees no later turn.

    r_it is what was placed on the turn's tokens and, on a trajectory's last turn, the response's own reward. E_i
    compares the sum of a trajectory's r_it with the group's, each trajectory counted once. With ``of = "turns"`` U is
    of what was placed on turns alone, without those whose oracle abstains, and E of the responses' own reward alone.

    By ``turn``, returns are compared as in ReMA and others, and rewards as by VPR (arXiv 2605.10325). By ``state``,
    ``before``, with ``episode = 1`` it is GiGPO (arXiv 2505.10978), equation 9; by ``task``, ``after`` the credit of
    IGPO (arXiv 2510.14967). What of these estimates the gradient is in ``docs/turn-credit.md``.

    Args:
        by: of the group ``task``, and of it the same ``turn`` index, ``state`` or tag (``tag+task``), or apart the
            ``last`` turns of trajectories and all others; or the same ``tag`` in the batch.
        sums: see above.
        discount: per turn, in [0, 1].
        kind, ddof, epsilon, singleton: of the comparison.
        of: ``all``, or ``turns`` and outcome apart.
        weight, episode: of U and of E, >= 0.
        apart: of several agents (``Turn.info["agent"]``) each has the returns of its own turns alone.
        padded: by ``turn``, trajectories that have ended count as 0. What is compared before it is summed has to be,
            see :func:`assay.ops.turns.turns_of`.

    Raises:
        UsageError: an option out of range; when called, ``by = "state"`` of an environment that tells no states.
    """

    by: By = "turn"
    sums: Literal["before", "after", "none"] = "before"
    discount: float = 1.0
    kind: Kind = "center_std"
    ddof: int = 1
    epsilon: float = 1e-6
    singleton: Singleton = "zero"
    of: Literal["all", "turns"] = "all"
    weight: float = 1.0
    episode: float = 0.0
    padded: bool = True
    apart: bool = False

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1 or min(self.weight, self.episode) < 0 or not self.weight + self.episode:
            raise UsageError(
                f"credit 'turn_group': discount {self.discount:g} must be in [0, 1], weight {self.weight:g} and "
                f"episode {self.episode:g} >= 0 and not both 0"
            )

    @property
    def summary(self) -> dict[str, str]:
        scale = {"center_std": "std", "median_mad": "median deviation"}.get(self.kind, "none")
        return {"baseline": f"turns of the same {self.by}", "normalisation": scale}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch, padded=self.padded and self.by == "turn")
        if self.by == "state" and len(turns) and all(turn.state is None for turn in turns.records):
            raise UsageError("credit 'turn_group': by = \"state\" needs an environment that tells its states")
        earned = turns.rewards
        if self.of == "turns":
            earned = earned - torch.where(turns.last, batch.rewards[turns.sample], 0)
        values = turns.returns(earned, self.discount, apart=self.apart) if self.sums == "before" else earned
        where = turns.active & turns.told if self.of == "turns" else turns.active
        values = normalise(values, turns.key(self.by), where, self.kind, self.ddof, self.epsilon, self.singleton)
        if self.sums == "after":
            values = turns.returns(values, self.discount, apart=self.apart)
        if self.episode:
            own = batch.rewards[turns.sample] if self.of == "turns" else turns.totals(turns.rewards)
            values = self.weight * values + self.episode * self.trajectories(turns, own)
        else:
            values = self.weight * values
        return turns.on_tokens(values, batch)

    def trajectories(self, turns: Turns, worth: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """Compare the trajectories of a group, each counted once; given to all of their turns."""
        once = turns.active & turns.last
        compared = normalise(worth, turns.key("task"), once, self.kind, self.ddof, self.epsilon, self.singleton)
        return turns.totals(compared)
