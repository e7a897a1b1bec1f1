"""Steps on record to learn from offline: of what quality they are is what there is to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from assay.environments.base import Numeric, Scripted
from assay.environments.foreign.vectors import decided, sizes, taken, vector
from assay.errors import UsageError
from assay.registry import build

QUALITIES = ("expert", "noisy", "play", "crossing", "random")
"""How episodes are recorded:

- ``expert``: straight to the goal: narrow, always the same;
- ``noisy``: straight to the goal, but every other action is drawn at random, on average;
- ``play``: to one place after another, undirected; what is paid is what the world pays on the way;
- ``crossing``: from the start by way of the middle to a place beside, and in every other episode from the opposite
  place by way of the middle to the goal: no episode goes from the start to the goal, but two can be put together;
- ``random``: uniform actions.

All but ``random`` are of a world that is :class:`~assay.environments.base.Scripted`.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """Steps of one episode after another.

    Attributes:
        states, after: ``(K, S)`` float32, seen before and after.
        actions: ``(K, A)`` float32 in [-1, 1].
        rewards: ``(K,)`` float32.
        terminated: ``(K,)`` bool, nothing comes after it: its value is its reward.
        truncated: ``(K,)`` bool, the record ends here, and the world would have gone on: what comes after counts.
        expert: ``(K,)`` bool, steps of a demonstration.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    after: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    expert: np.ndarray

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def returns(self) -> np.ndarray:
        """The undiscounted return of each episode."""
        ends = np.flatnonzero(self.terminated | self.truncated) + 1
        return np.array([part.sum() for part in np.split(self.rewards, ends) if len(part)])

    def where(self, chosen: np.ndarray) -> Record:
        """Return some of the steps, ``(K,)`` bool or indices."""
        return Record(*(getattr(self, f.name)[chosen] for f in fields(self)))

    @classmethod
    def joined(cls, records: Sequence[Record]) -> Record:
        return cls(*(np.concatenate([getattr(r, f.name) for r in records]) for f in fields(cls)))


def recorded(environment: Any, mix: Mapping[str, int], seed: int = 0, limit: int = 1000) -> Record:
    """Return episodes of a world by their qualities: of each as many as ``mix`` says.

    Args:
        environment: a part that can be played by numbers, by name or as a table.
        mix: episodes of each of :data:`QUALITIES`.
        seed: of starts and actions.
        limit: steps of an episode that the world does not end.

    Raises:
        UsageError: an unknown quality, no episodes, or a world that cannot be played so.
    """
    played = build("environment", environment)
    if not isinstance(played, Numeric):
        raise UsageError(f"records: environment {environment!r} is not played by numbers; take point_mass or gymnasium")
    unknown = [quality for quality in mix if quality not in QUALITIES]
    if unknown or not sum(mix.values()) or min(mix.values()) < 0:
        raise UsageError(f"records: {dict(mix)} is to say how many episodes of {', '.join(QUALITIES)} there are")
    world: Any = played.world
    scripted = isinstance(getattr(world, "unwrapped", world), Scripted)
    if not scripted and (wanted := [q for q, n in mix.items() if n and q != "random"]):
        raise UsageError(
            f"records: {environment!r} has no script, so there is no {wanted[0]}; record random, or a file"
        )
    rng = np.random.default_rng([seed, 41])
    made = [_episode(world, q, k, rng, limit) for q, count in mix.items() for k in range(count)]
    played.close()  # type: ignore[attr-defined]
    return Record.joined(made)


def _episode(world: Any, quality: str, number: int, rng: np.random.Generator, limit: int) -> Record:
    bare: Any = getattr(world, "unwrapped", world)
    seed = int(rng.integers(2**31))
    second = quality == "crossing" and number % 2 == 1
    seen, _ = world.reset(seed=seed)
    if second:
        seen, _ = world.reset(options={"start": bare.aside(-1)})
    way = [bare.middle(), None if second else bare.aside(1)] if quality == "crossing" else []
    target = way[0] if way else None
    rows = []
    space, size = world.action_space, sizes(world)[1]
    for step in range(limit):
        if quality == "play" and (target is None or rng.random() < 0.2):
            target = bare.somewhere(rng)
        noise = quality == "random" or (quality == "noisy" and rng.random() < 0.5)
        action = rng.uniform(-1, 1, size).astype(np.float32) if noise else _numbers(space, bare.toward(target))
        near = bool(way) and target is not None and float(np.abs(bare.toward(target)).max()) < 1
        state = vector(world.observation_space, seen)
        seen, reward, over, cut, _ = world.step(taken(space, action))
        after = vector(world.observation_space, seen)
        cut = not over and (bool(cut) or step + 1 == limit or (near and len(way) == 1))
        rows.append((state, action, float(reward), after, bool(over), cut))
        if over or cut:
            break
        if near:
            way = way[1:]
            target = way[0]
    states, actions, rewards, after, terminated, truncated = zip(*rows, strict=True)
    return Record(
        np.stack(states),
        np.stack(actions),
        np.array(rewards, dtype=np.float32),
        np.stack(after),
        np.array(terminated),
        np.array(truncated),
        np.full(len(rows), quality == "expert"),
    )


def _numbers(space: Any, value: Any) -> np.ndarray:
    return decided(space, np.asarray(value, dtype=np.float32))


def read(path: Path) -> Record:
    """Read a NumPy archive in the layout of D4RL: ``observations``, ``actions``, ``rewards``, ``next_observations``,
    ``terminals``, and ``timeouts`` and ``expert`` where it has them. Actions are in [-1, 1].

    Raises:
        UsageError: no such file, or one of another layout.
    """
    if not path.is_file():
        raise UsageError(f"records: no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files}
    except (ValueError, OSError) as error:
        raise UsageError(f"records: {path} is no NumPy archive: {error}") from None
    needed = ("observations", "actions", "rewards", "next_observations", "terminals")
    if missing := [name for name in needed if name not in held]:
        raise UsageError(f"records: {path} has no {missing[0]}; D4RL's layout has {', '.join(needed)}")
    sizes_ = {name: len(held[name]) for name in needed}
    if len({*sizes_.values()}) > 1 or not sizes_["rewards"]:
        raise UsageError(f"records: {path} has arrays of unequal length, or none: {sizes_}")
    no = np.zeros(sizes_["rewards"], dtype=bool)
    terminated = held["terminals"].astype(bool)
    return Record(
        held["observations"].astype(np.float32),
        held["actions"].astype(np.float32),
        held["rewards"].astype(np.float32),
        held["next_observations"].astype(np.float32),
        terminated,
        held.get("timeouts", no).astype(bool) & ~terminated,
        held.get("expert", no).astype(bool),
    )


def data_of(spec: Mapping[str, Any]) -> Record:
    """Return the steps of a table: a ``path``, or an ``environment`` with its ``mix`` of episodes, and a ``seed``.

    Raises:
        UsageError: it has neither or both, or another key.
    """
    left = {**spec}
    path, environment, mix = left.pop("path", None), left.pop("environment", None), left.pop("mix", {})
    seed, limit = left.pop("seed", 0), left.pop("limit", 1000)
    if left or (path is None) == (environment is None):
        raise UsageError(f"records: {dict(spec)} is to have a path, or an environment and a mix {{quality = episodes}}")
    return read(Path(path)) if path is not None else recorded(environment, mix, seed, limit)
