"""Transitions of vectors by the million: a ring of columns, which to draw from takes as long however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.environments.control.recorded import Record
from assay.errors import UsageError
from assay.policies.control.policy import ControlPolicy
from assay.types import Ask, Episode, Group, Path, Task, Verdict


@dataclass(frozen=True, slots=True)
class Drawn:
    """Transitions that were drawn.

    Attributes:
        states, after: ``(M, S)``.
        actions: ``(M, A)``.
        rewards: ``(M,)``.
        done: ``(M,)`` nothing comes after it. A transition that a limit has cut is not done: what comes after counts.
        expert: ``(M,)`` of a demonstration.
    """

    states: Float[Tensor, "M S"]
    actions: Float[Tensor, "M A"]
    rewards: Float[Tensor, "M"]
    after: Float[Tensor, "M S"]
    done: Bool[Tensor, "M"]
    expert: Bool[Tensor, "M"]

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: slice) -> Drawn:
        return Drawn(*(getattr(self, name)[rows] for name in NAMES))

    @classmethod
    def joined(cls, parts: Sequence[Drawn]) -> Drawn:
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in NAMES))

    def to(self, device: torch.device) -> Drawn:
        return Drawn(*(getattr(self, name).to(device) for name in NAMES))

    def batch(self, policy: ControlPolicy) -> Batch:
        """Return a batch of one sample, whose decisions are those of the transitions.

        What a policy says of a step depends on no other, so that it need not stand in its own episode.
        """
        path = Path(*(x.cpu().numpy() for x in (self.states, self.actions, self.after)))
        tokens = policy.tokens_of(path.actions).reshape(-1)
        episode = Episode(tokens[:0], tokens, np.ones(len(tokens), dtype=bool), None, "", "eos", path=path)
        return Batch.from_groups([Group(Ask(Task("replayed", ""), 1), (episode,), (Verdict.right(),))])


NAMES = ("states", "actions", "rewards", "after", "done", "expert")
TYPES = (np.float32, np.float32, np.float32, np.float32, np.bool_, np.bool_)


class Columns:
    """The last ``capacity`` transitions, of S numbers seen and A decided: 4 (2 S + A + 1) + 2 bytes each.

    Args:
        capacity: at least 1; the oldest go first. Memory is taken as it fills.
        sizes: S and A.

    Raises:
        UsageError: ``capacity`` below 1.
    """

    def __init__(self, capacity: int, sizes: tuple[int, int]):
        if capacity < 1:
            raise UsageError(f"a replay buffer holds at least 1 transition, not {capacity}")
        self.capacity, self.sizes, self.added = capacity, sizes, 0
        width = {"states": (sizes[0],), "actions": (sizes[1],), "after": (sizes[0],)}
        self.columns = {n: np.zeros((capacity, *width.get(n, ())), t) for n, t in zip(NAMES, TYPES, strict=True)}

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, record: Record) -> None:
        """Keep steps, in their order.

        Raises:
            UsageError: they are of other numbers.
        """
        found = (record.states.shape[1], record.actions.shape[1])
        if found != self.sizes:
            raise UsageError(
                f"records of {found[0]} numbers seen and {found[1]} decided are not the policy's, of {self.sizes[0]} "
                f"and {self.sizes[1]}; record them in its world"
            )
        place = (self.added + np.arange(len(record))) % self.capacity
        given = (record.states, record.actions, record.rewards, record.after, record.terminated, record.expert)
        for name, values in zip(NAMES, given, strict=True):
            self.columns[name][place[-self.capacity :]] = values[-self.capacity :]
        self.added += len(record)

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Return ``count`` transitions, drawn uniformly with replacement."""
        place = rng.integers(len(self), size=count)
        return Drawn(*(torch.from_numpy(self.columns[name][place]) for name in NAMES))

    def state_dict(self) -> dict[str, Any]:
        kept = {name: torch.from_numpy(self.columns[name][: len(self)].copy()) for name in NAMES}
        return {"added": self.added, **kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.added = state["added"]
        for name in NAMES:
            self.columns[name][: len(self)] = state[name].numpy()


def steps_of(batch: Batch) -> Record | None:
    """Return the steps of a batch's valid samples as they were taken; ``None`` where there are none.

    Actions are what the world took of them, within [-1, 1].
    """
    found = []
    for episode, valid in zip(batch.episodes, batch.valid.tolist(), strict=True):
        if not valid or episode.path is None:
            continue
        path, turns = episode.path, episode.turns
        found.append(
            Record(
                path.states,
                np.clip(path.actions, -1, 1),
                np.array([turn.reward for turn in turns], dtype=np.float32),
                path.after,
                np.array([turn.terminated for turn in turns]),
                np.array([turn.truncated for turn in turns]),
                np.zeros(len(turns), dtype=bool),
            )
        )
    return Record.joined(found) if found else None
