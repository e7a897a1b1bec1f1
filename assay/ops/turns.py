"""The turns of a batch as a table: their rewards and returns, whom a turn is compared with, values on its tokens."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.ops.groups import group_count, group_mean, group_std
from assay.types import Episode, Turn

By = Literal["task", "turn", "last", "state", "tag", "tag+task"]
Kind = Literal["none", "center", "leave_one_out", "center_std", "median_mad"]
Singleton = Literal["zero", "keep_raw"]


@dataclass(frozen=True, slots=True)
class Turns:
    """The M turns of a batch, each trajectory's in order. An episode without turns is a single one.

    Attributes:
        records: what is known of each.
        sample: ``(M,)`` the row it stands in.
        trajectory, group: ``(M,)`` as in the batch.
        index: ``(M,)`` of the turn in its trajectory, from 0.
        played: ``(M,)`` false for turns that are only there because others of the group have played longer.
        last: ``(M,)`` whether it is its trajectory's last that was played.
        active: ``(M,)`` whether its sample is.
        told: ``(M,)`` false where an oracle was asked of the turn and abstained: what it earned is not known.
        rewards: ``(M,)`` what was placed on its own tokens, and on a last turn the response's own reward: once for a
            trajectory, in however many samples it is.
        place: ``(N, T)`` the turn that a token is the policy's own in, -1 elsewhere.
    """

    records: Sequence[Turn]
    sample: Int[Tensor, "M"]
    trajectory: Int[Tensor, "M"]
    group: Int[Tensor, "M"]
    index: Int[Tensor, "M"]
    played: Bool[Tensor, "M"]
    last: Bool[Tensor, "M"]
    active: Bool[Tensor, "M"]
    told: Bool[Tensor, "M"]
    rewards: Float[Tensor, "M"]
    place: Int[Tensor, "N T"]

    def __len__(self) -> int:
        return len(self.records)

    def key(self, by: By) -> Int[Tensor, "M"]:
        """Return numbers that are equal for turns that are compared: of the same group (``task``), and there of the
        same ``turn`` index, the same ``state`` or the same tag (``tag+task``), or apart the ``last`` turns of
        trajectories and the others; by ``tag``, of the batch's.

        A turn whose state is not told is like no other; turns without a tag have that in common.
        """
        groups, index = self.group.tolist(), self.index.tolist()
        if by == "task":
            return numbered(groups)
        if by == "turn":
            return numbered(list(zip(groups, index, strict=True)))
        if by == "last":
            return numbered(list(zip(groups, self.last.tolist(), strict=True)))
        if by == "tag":
            return numbered([turn.tag for turn in self.records])
        if by == "tag+task":
            return numbered([(g, turn.tag) for g, turn in zip(groups, self.records, strict=True)])
        states = [(turn.state, -1 if turn.state is not None else m) for m, turn in enumerate(self.records)]
        return numbered(list(zip(groups, states, strict=True)))

    @property
    def agent(self) -> list[int]:
        """Who took each turn, as its environment has noted (``info["agent"]``); 0 where there is one agent."""
        return [int(turn.info.get("agent", 0)) for turn in self.records]

    def returns(
        self,
        rewards: Float[Tensor, "M"],
        discount: float = 1.0,
        reset: Bool[Tensor, "M"] | None = None,
        apart: bool = False,
    ) -> Float[Tensor, "M"]:
        """G_t = r_t + discount G_{t+1} along each trajectory; at a ``reset`` G_t = r_t, and none of it flows back.

        ``reset`` is that of the turns themselves if left out. Of several agents each has, where they are ``apart``, the
        returns of its own turns alone.
        """
        if reset is None:
            reset = torch.tensor([turn.reset for turn in self.records], dtype=torch.bool)
        kept, cut, trajectory = rewards.tolist(), reset.tolist(), self.trajectory.tolist()
        agent = self.agent if apart else [0] * len(kept)
        flow: dict[int, float] = {}
        for m in reversed(range(len(kept))):
            if m + 1 < len(kept) and trajectory[m] != trajectory[m + 1]:
                flow = {}
            if cut[m]:
                flow = {}
                continue
            flow[agent[m]] = kept[m] = kept[m] + discount * flow.get(agent[m], 0.0)
        return torch.tensor(kept, dtype=rewards.dtype)

    def totals(self, x: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """Sum of ``x`` over all turns of each one's trajectory."""
        number = numbered(self.trajectory.tolist())
        return torch.zeros(len(self), dtype=x.dtype).index_add_(0, number, x)[number]

    def sums(self, x: Float[Tensor, "N T"]) -> Float[Tensor, "M"]:
        """Sum of ``x`` over each turn's own tokens."""
        own = self.place >= 0
        return torch.zeros(len(self), dtype=x.dtype).index_add_(0, self.place[own], x[own])

    def means(self, x: Float[Tensor, "N T"]) -> Float[Tensor, "M"]:
        """Mean of ``x`` over each turn's own tokens; zero for a turn without any."""
        return self.sums(x) / self.sums(torch.ones_like(x)).clamp(min=1)

    def on_tokens(self, values: Float[Tensor, "M"], batch: Batch) -> Float[Tensor, "N T"]:
        """One value per turn on each of its own learnable tokens, where the sample is active; zero elsewhere."""
        here = (self.place >= 0) & batch.mask & batch.active[:, None]
        if not len(self):
            return torch.zeros_like(batch.advantages)
        return torch.where(here, values[self.place.clamp(min=0)], 0)


def own_turns(episode: Episode) -> tuple[Turn, ...]:
    """Return the turns of an episode; of one that notes none its whole response as a single turn."""
    return episode.turns or (Turn(0, 0, len(episode.tokens)),)


def turns_of(batch: Batch, padded: bool = False) -> Turns:
    """Return the turns of a batch, see :class:`Turns`.

    With ``padded`` a trajectory that has ended goes on, in turns without tokens and without reward, for as long as any
    of its group: what is compared by turn index is then compared over the whole group. Where values are compared first
    and summed over later turns afterwards, a comparison of the living alone is biased, because the policy decides who
    lives: if it goes on with probability p, and a turn more pays 1, the gradient is p (1 - p), and would be 0.
    """
    found = [(i, turn, True) for i, episode in enumerate(batch.episodes) for turn in own_turns(episode)]
    found += _beyond(batch) if padded else []
    whole = batch.trajectory.tolist()
    found.sort(key=lambda it: (whole[it[0]], it[1].index))
    sample = torch.tensor([i for i, _, _ in found], dtype=torch.int64)
    index = torch.tensor([turn.index for _, turn, _ in found], dtype=torch.int64)
    played = torch.tensor([real for _, _, real in found], dtype=torch.bool)
    trajectory = batch.trajectory[sample]
    last = played & (index == _greatest(torch.where(played, index, -1), trajectory))
    longest = int(index.max()) + 1 if len(index) else 0
    where = torch.full((len(batch), longest), -1, dtype=torch.int64)
    where[sample, index] = torch.arange(len(found))
    place = torch.where(batch.turn >= 0, where.gather(1, batch.turn.clamp(min=0)), -1) if longest else batch.turn
    turns = Turns(
        records=tuple(turn for _, turn, _ in found),
        sample=sample,
        trajectory=trajectory,
        group=batch.group[sample],
        index=index,
        played=played,
        last=last,
        active=batch.active[sample],
        told=torch.tensor([t.verdict is None or t.verdict.passed is not None for _, t, _ in found], dtype=torch.bool),
        rewards=torch.where(last, batch.rewards[sample], 0),
        place=place,
    )
    if batch.token_rewards is not None:
        turns.rewards.add_(turns.sums(torch.where(batch.mask, batch.token_rewards, 0)))
    return turns


def normalise(
    x: Float[Tensor, "M"],
    key: Int[Tensor, "M"],
    where: Bool[Tensor, "M"],
    kind: Kind = "center_std",
    ddof: int = 1,
    epsilon: float = 1e-6,
    singleton: Singleton = "zero",
    least: float = 0.0,
) -> Float[Tensor, "M"]:
    """Compare each value with those of the same key: x' = (x - c) / s over them, within ``where``; zero outside it.

    - ``none``: x; ``center``: c the mean, s = 1; ``leave_one_out``: c the mean of the others, s = 1;
    - ``center_std``: c the mean, s the standard deviation + epsilon;
    - ``median_mad``: c the lower median, s = max(1.4826 lower median of abs(x - c), least) + epsilon.

    Args:
        x: one value per turn, or per whatever is compared.
        key: numbers, equal for what is compared, see :meth:`Turns.key`.
        where: what counts.
        kind: see above.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        epsilon: >= 0.
        singleton: of a value that is compared with no other: ``zero``, or x itself (``keep_raw``).
        least: smallest median deviation.
    """
    number = torch.unique(key, return_inverse=True)[1]
    if kind == "none":
        return torch.where(where, x, 0)
    count = group_count(number, where, x.dtype)
    if kind == "median_mad":
        centre = _lower_median(x, number, where)
        spread = _lower_median((x - centre).abs(), number, where)
        out = _divided(x - centre, (1.4826 * spread).clamp(min=least) + epsilon)
    else:
        out = x - group_mean(x, number, where)
        if kind == "leave_one_out":
            out = out * count / (count - 1).clamp(min=1)
        elif kind == "center_std":
            out = _divided(out, group_std(x, number, where, ddof) + epsilon)
    alone = x if singleton == "keep_raw" else torch.zeros_like(x)
    return torch.where(where, torch.where(count > 1, out, alone), 0)


def numbered(keys: Sequence[Hashable]) -> Int[Tensor, "M"]:
    """Return a number for each key, equal where keys are."""
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return torch.tensor([number[key] for key in keys], dtype=torch.int64)


def _divided(x: Float[Tensor, "M"], by: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
    """Where nothing differs there is nothing to divide."""
    return x / torch.where(by > 0, by, 1)


def _beyond(batch: Batch) -> list[tuple[int, Turn, bool]]:
    """Return what :func:`turns_of` pads with: the sample of each turn, the turn, and that it was not played."""
    ends: dict[int, tuple[int, Turn]] = {}
    longest: dict[int, int] = {}
    for i, episode in enumerate(batch.episodes):
        trajectory, group, turn = int(batch.trajectory[i]), int(batch.group[i]), own_turns(episode)[-1]
        if trajectory not in ends or ends[trajectory][1].index < turn.index:
            ends[trajectory] = i, turn
        longest[group] = max(longest.get(group, 0), turn.index)
    return [
        (i, Turn(k, turn.end, turn.end), False)
        for i, turn in ends.values()
        for k in range(turn.index + 1, longest[int(batch.group[i])] + 1)
    ]


def _greatest(x: Int[Tensor, "M"], owner: Int[Tensor, "M"]) -> Int[Tensor, "M"]:
    size = int(owner.max()) + 1 if len(owner) else 0
    return torch.zeros(size, dtype=x.dtype).scatter_reduce(0, owner, x, "amax", include_self=False)[owner]


def _lower_median(x: Float[Tensor, "M"], number: Int[Tensor, "M"], where: Bool[Tensor, "M"]) -> Float[Tensor, "M"]:
    """The median of each one's key, of two middle values the lower."""
    out = torch.zeros_like(x)
    for k in number[where].unique().tolist():
        out[number == k] = x[where & (number == k)].median()
    return out
