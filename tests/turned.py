"""Small batches of turns, and steps of policies of numbers, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.environments.control.recorded import Record
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.signals.transitions.columns import Drawn
from assay.types import Ask, Episode, Group, Task, Turn, Verdict


def turned(
    rewards: Sequence[Sequence[float]],
    outcomes: Sequence[float] | None = None,
    own: int = 2,
    gap: int = 1,
    groups: Sequence[str] | None = None,
    **fields: Sequence[Sequence[Any]],
) -> Batch:
    """One sample for each row of turn rewards; every turn has ``own`` tokens, ``gap`` of the world's after each.

    Turn rewards are placed on the turns' last own tokens, outcomes are the samples' rewards; ``fields`` are of turns.
    """
    made = []
    for i, row in enumerate(rewards):
        width = len(row) * (own + gap)
        mask = np.zeros(width, dtype=bool)
        turns = []
        for t, reward in enumerate(row):
            start = t * (own + gap)
            mask[start : start + own] = True
            more = {name: values[i][t] for name, values in fields.items()}
            turns.append(Turn(t, start, start + own, reward=reward, **more))
        ids = np.zeros(width, dtype=np.int64)
        episode = Episode(ids[:0], ids, mask, None, "", "eos", turns=tuple(turns), trajectory=str(i))
        episode = replace(episode, advantage_group=groups[i] if groups else "g")
        score = outcomes[i] if outcomes else 0.0
        made.append(Group(Ask(Task(str(i), ""), 1), (episode,), (Verdict(min(max(score, 0), 1), score > 0),)))
    batch = Batch.from_groups(made, torch.float64)
    batch.rewards = torch.tensor(outcomes or [0.0] * len(rewards), dtype=torch.float64)
    batch.token_rewards = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for i, row in enumerate(rewards):
        for t, reward in enumerate(row):
            batch.token_rewards[i, t * (own + gap) + own - 1] = reward
    return batch


def by_turn(advantages: torch.Tensor, batch: Batch) -> list[list[float]]:
    """One value for each turn, which all of its tokens have and no other."""
    out = []
    for row, episode in zip(advantages, batch.episodes, strict=True):
        found = [row[turn.start : turn.end].unique().tolist() for turn in episode.turns]
        assert all(len(values) == 1 for values in found)
        out.append([values[0] for values in found])
    assert not advantages[~batch.mask].any()
    return out


def policy_of(seed: int = 0, **control: Any) -> Any:
    """A policy for the point mass, by the keys of ``model.control``, where tests make their tensors."""
    return load_policy(ModelConfig.model_validate({"source": "control", "device": "cpu", "control": control}), seed)


def record_of(
    lengths: Sequence[int], over: Sequence[bool] = (), sizes: tuple[int, int] = (2, 1), first: float = 0.0
) -> Record:
    """Episodes of so many steps, the k-th step of all paid k more than ``first``; cut where they are not over."""
    count = sum(lengths)
    ends = np.zeros(count, dtype=bool)
    ends[np.cumsum(lengths) - 1] = True
    last = np.repeat([*over, *[True] * (len(lengths) - len(over))], lengths)
    k = np.arange(count, dtype=np.float32)[:, None] + first
    states = np.repeat(k, sizes[0], 1)
    actions = np.repeat(np.sin(k), sizes[1], 1)
    return Record(states, actions, k[:, 0], states + 1, ends & last, ends & ~last, np.zeros(count, dtype=bool))


def drawn(count: int, sizes: tuple[int, int] = (2, 1), seed: int = 0) -> Drawn:
    """Random transitions, every third of them over, the first half of demonstrations."""
    rng = np.random.default_rng(seed)
    states, after = (torch.from_numpy(rng.standard_normal((count, sizes[0])).astype(np.float32)) for _ in range(2))
    actions = torch.from_numpy(rng.uniform(-1, 1, (count, sizes[1])).astype(np.float32))
    rewards = torch.from_numpy(rng.standard_normal(count).astype(np.float32))
    index = torch.arange(count)
    return Drawn(states, actions, rewards, after, index % 3 == 2, index < count // 2)
