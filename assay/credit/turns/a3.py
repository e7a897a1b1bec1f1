"""Turns of shell agents: what an episode was worth, what similar commands were worth, what a command chose."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.shell import clusters, signature
from assay.ops.turns import Turns, normalise, turns_of
from assay.registry import part
from assay.types import Turn

WHOLE = -1


@part("credit", "a3")
@dataclass(frozen=True, slots=True)
class A3:
    """A_it = bound tanh((b_i + residual r_it + tree t_it) / bound) on every token of turn t of trajectory i.

    R_i is the sum of a trajectory's rewards. With N(x) = tanh((x - c) / s) over what is compared, c the lower median,
    s = 1.4826 times the lower median of abs(x - c), at least ``least``:

    - *episode*: b_i = N(R_i) over the task's trajectories;
    - *similar commands*: at turn k and for each scope s the texts of the last s turns up to k (-1: of the whole
      trajectory) of the trajectories that have a turn k are put into ceil(m / size) clusters by syntax, see
      :mod:`assay.ops.shell`; M_iks is the mean R of the others in i's cluster, R_i where there are none;
      r_ik = N(mean over s of R_i - M_iks), compared over the task's trajectories at the same turn. With ``where =
      "first"`` all turns have that of the first;
    - *what was chosen*: turns are in the same state if the clusters of all turns before agree, and the same action in
      it if those of turn k do, both up to ``near``, earlier turns weighing more by ``decay``. Where a state has two
      actions, gain = n / (n + ridge) (mean R of the action - mean R of the state) and support = n / (n + ridge), n the
      action's number; else both are 0. With G and S their sums over later turns, discounted, t_it = S / (S + ridge) G.

    Each of the three is divided by its mean absolute value over the batch's turns. With ``leak_free`` the scope of the
    whole trajectory, which knows what came later, is left out of states, actions and residuals.

    Args:
        residual, tree: weights, >= 0.
        scopes: turns that are looked back on, each >= 1, or -1.
        size: trajectories to a cluster, > 0.
        ridge: lambda, > 0.
        discount: of gains of later turns, in [0, 1].
        decay: in (0, 1].
        near: in [0, 1).
        bound: B, > 0.
        least: smallest s, > 0.
        where: ``every`` turn its own residual, or the ``first`` turn's for all.
        leak_free: see above.
        argument: of a call, that holds its command; a call without it counts as its tool's name and arguments, and a
            turn without a call as its tag.

    Raises:
        UsageError: an option out of range.

    Source: A3 (arXiv 2605.08013) and its authors' code, where ``where`` is ``first``.
    """

    residual: float = 0.65
    tree: float = 1.0
    scopes: Sequence[int] = (1, 2, 3, WHOLE)
    size: float = 2.0
    ridge: float = 0.1
    discount: float = 0.9
    decay: float = 0.84
    near: float = 0.05
    bound: float = 1.1
    least: float = 0.5
    where: Literal["every", "first"] = "every"
    leak_free: bool = False
    argument: str = "command"

    level = "token"
    group_relative = True

    def __post_init__(self) -> None:
        good = min(self.residual, self.tree) >= 0 and min(self.size, self.ridge, self.bound, self.least) > 0
        good = good and 0 <= self.discount <= 1 and 0 < self.decay <= 1 and 0 <= self.near < 1
        good = good and bool(self.looked_at) and all(s >= 1 or s == WHOLE for s in self.scopes)
        if not good:
            raise UsageError("credit 'a3': an option is out of range; see its docstring")

    @property
    def looked_at(self) -> tuple[int, ...]:
        return tuple(s for s in self.scopes if s != WHOLE or not self.leak_free)

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch)
        if not len(turns):
            return torch.zeros_like(batch.advantages)
        terms = self.terms(turns)
        weights = (1.0, self.residual, self.tree)
        total = torch.zeros_like(turns.rewards)
        for weight, term in zip(weights, terms, strict=True):
            scale = term[turns.active].abs().mean() if bool(turns.active.any()) else torch.tensor(0.0)
            total = total + (weight * term / scale if scale > 0 else 0)
        return turns.on_tokens(self.bound * torch.tanh(total / self.bound), batch)

    def terms(self, turns: Turns) -> tuple[Float[Tensor, "M"], Float[Tensor, "M"], Float[Tensor, "M"]]:
        """Return b, r and t of each turn, before they are scaled."""
        returns = turns.totals(turns.rewards)
        first = turns.index == 0
        episode = torch.zeros_like(returns)
        episode[first] = self._bounded(returns[first], turns.group[first], turns.active[first])
        episode = turns.totals(episode)
        raw, labels = self._residuals(turns, returns)
        residual = self._bounded(raw, turns.key("turn"), turns.active)
        if self.where == "first":
            residual = turns.totals(torch.where(first, residual, 0))
        return episode, residual, self._tree(turns, returns, labels)

    def _bounded(self, x: Tensor, key: Tensor, where: Tensor) -> Tensor:
        return torch.tanh(normalise(x, key, where, "median_mad", epsilon=1e-8, least=self.least))

    def _residuals(self, turns: Turns, returns: Tensor) -> tuple[Tensor, dict[int, tuple[int, ...]]]:
        """Return the mean over scopes of R - M of each turn, and the clusters it is in, by scope."""
        texts = [self.text(turn) for turn in turns.records]
        rows: dict[int, list[int]] = defaultdict(list)
        for m in range(len(turns)):
            rows[int(turns.trajectory[m])].append(m)
        out = torch.zeros_like(returns)
        labels: dict[int, tuple[int, ...]] = dict.fromkeys(range(len(turns)), ())
        for members in self._alongside(turns):
            for scope in self.looked_at:
                said = []
                for m in members:
                    own = rows[int(turns.trajectory[m])]
                    at = own.index(m)
                    chosen = own if scope == WHOLE else own[max(0, at + 1 - scope) : at + 1]
                    said.append(signature("\n".join(texts[j] for j in chosen)))
                found = clusters(said, self.size)
                for m, mine in zip(members, found, strict=True):
                    others = [j for j, theirs in zip(members, found, strict=True) if theirs == mine and j != m]
                    mean = returns[others].mean() if others else returns[m]
                    out[m] += (returns[m] - mean) / len(self.looked_at)
                    labels[m] = (*labels[m], mine)
        return out, labels

    def _alongside(self, turns: Turns) -> list[list[int]]:
        """Return the active turns that have the same place in trajectories of a task, together."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for m in turns.active.nonzero()[:, 0].tolist():
            found[int(turns.group[m]), int(turns.index[m])].append(m)
        return list(found.values())

    def _tree(self, turns: Turns, returns: Tensor, labels: dict[int, tuple[int, ...]]) -> Tensor:
        at = {(int(turns.trajectory[m]), int(turns.index[m])): m for m in range(len(turns))}
        gain, support = torch.zeros_like(returns), torch.zeros_like(returns)
        for members in self._alongside(turns):
            k = int(turns.index[members[0]])
            ways = {m: [labels[at[int(turns.trajectory[m]), j]] for j in range(k)] for m in members}
            for m in members:
                state = [j for j in members if self._apart(ways[m], ways[j]) <= self.near]
                action = [j for j in state if _differ(labels[m], labels[j]) <= self.near]
                if len(action) < len(state):
                    n = len(action)
                    support[m] = n / (n + self.ridge)
                    gain[m] = support[m] * (returns[action].mean() - returns[state].mean())
        never = torch.zeros(len(turns), dtype=torch.bool)
        later, weight = (turns.returns(x, self.discount, never) for x in (gain, support))
        return weight / (weight + self.ridge) * later

    def _apart(self, one: Sequence[tuple[int, ...]], other: Sequence[tuple[int, ...]]) -> float:
        """Return how far two ways to a turn are apart, in [0, 1]; the first turns weigh most."""
        weights = [self.decay**j for j in range(len(one))]
        gaps = math.fsum(w * _differ(a, b) for w, a, b in zip(weights, one, other, strict=True))
        return gaps / math.fsum(weights) if weights else 0.0

    def text(self, turn: Turn) -> str:
        """Return what a turn did, as a text of the shell."""
        done = [call for call in turn.calls if not call.problem and call.arguments is not None]
        if not done:
            return turn.tag or ""
        return "\n".join(
            str(call.arguments[self.argument])
            if call.arguments and self.argument in call.arguments
            else " ".join([call.name, *map(str, (call.arguments or {}).values())])
            for call in done
        )


def _differ(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the share of scopes in which two turns are in different clusters."""
    return sum(a != b for a, b in zip(one, other, strict=True)) / max(len(one), 1)
