"""The padded tensors that every seam to the right of ``verify`` works on.

``N`` is the number of samples, ``T`` the longest response among them. Rows are right-padded; ``mask`` says which
tokens the policy made and may learn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.types import Episode, Group, Task, Verdict


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the whole mini-batch, shared by its micro-batches so that their losses add up to the mini-batch's.

    Attributes:
        tokens: learnable tokens of samples with non-zero weight.
        sequences: samples with non-zero weight and at least one learnable token.
        groups: distinct advantage groups among them.
        trajectories: distinct trajectories among them.
    """

    tokens: float
    sequences: float
    groups: float
    trajectories: float


@dataclass(slots=True)
class Loss:
    """What an objective returns: a scalar to minimise and detached numbers worth logging (means over what it saw)."""

    value: Float[Tensor, ""]
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Reward:
    """What a reward part returns.

    Attributes:
        values: ``(N,)`` one number per sample.
        tokens: ``(N, T)`` reward placed on tokens beside ``values``, or ``None``.
        valid: ``(N,)`` false where no reward could be told (an abstention): the sample leaves statistics and update.
        terms: each ingredient by name, ``(N,)``, for the log and the rollout store.
    """

    values: Float[Tensor, "N"]
    tokens: Float[Tensor, "N T"] | None = None
    valid: Bool[Tensor, "N"] | None = None
    terms: dict[str, Tensor] = field(default_factory=dict)


@dataclass(slots=True)
class Batch:
    """N samples as padded tensors. Filled from left to right: rollout and verdicts, signals, reward, credit, select.

    Attributes:
        episodes, tasks, verdicts: per sample, length N.
        tokens: ``(N, T)`` int64 response tokens, 0 where padded.
        mask: ``(N, T)`` bool, learnable tokens.
        logprobs: ``(N, T)`` float32 behaviour log-probabilities; NaN where the author's are unknown, 0 where padded.
        prompt_group: ``(N,)`` int64, index of the prompt's group within the rollout.
        group: ``(N,)`` int64, index of the advantage group; equals ``prompt_group`` unless episodes say otherwise.
        trajectory: ``(N,)`` int64, index of the trajectory: samples are parts of one where their episodes say so.
        turn: ``(N, T)`` int64, index of the turn in its trajectory that a token is the policy's own in, -1 elsewhere; 0
            on every learnable token of an episode without turns.
        valid: ``(N,)`` bool, false for samples without a reward.
        rewards: ``(N,)``; token_rewards ``(N, T)`` or None; reward_terms by name, ``(N,)`` each.
        advantages: ``(N, T)``, zero outside ``mask``.
        weights: ``(N,)``, 0 drops a sample from statistics and update.
        signals: detached quantities asked for with ``needs``; first dimension N.
        whole: names of signals whose second dimension is not that of tokens, even where it is as long.
        live: quantities with a gradient asked for with ``live``, set for the micro-batch being differentiated.
        answer: where a response to a task has its answer, as the run's verifier says; ``None`` where there is no run.
        totals: counts over the mini-batch this batch is (a part of).
    """

    episodes: Sequence[Episode]
    tasks: Sequence[Task]
    verdicts: Sequence[Verdict]
    tokens: Int[Tensor, "N T"]
    mask: Bool[Tensor, "N T"]
    logprobs: Float[Tensor, "N T"]
    prompt_group: Int[Tensor, "N"]
    group: Int[Tensor, "N"]
    trajectory: Int[Tensor, "N"]
    turn: Int[Tensor, "N T"]
    valid: Bool[Tensor, "N"]
    rewards: Float[Tensor, "N"]
    advantages: Float[Tensor, "N T"]
    weights: Float[Tensor, "N"]
    token_rewards: Float[Tensor, "N T"] | None = None
    reward_terms: dict[str, Tensor] = field(default_factory=dict)
    signals: dict[str, Tensor] = field(default_factory=dict)
    live: dict[str, Tensor] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    answer: Callable[[Task, str], Any] | None = None
    totals: Totals | None = None

    @classmethod
    def from_groups(cls, groups: Sequence[Group], dtype: torch.dtype = torch.float32) -> Batch:
        """Pad the episodes of ``groups`` into tensors; rewards and advantages start at zero, weights at one."""
        episodes = [e for g in groups for e in g.episodes]
        tasks = [g.task for g in groups for _ in g.episodes]
        verdicts = [v for g in groups for v in (g.verdicts or [Verdict.abstain("not verified")] * len(g.episodes))]
        keys = [
            e.advantage_group if e.advantage_group is not None else i for i, g in enumerate(groups) for e in g.episodes
        ]
        index = {k: i for i, k in enumerate(dict.fromkeys(keys))}
        parts = [e.trajectory if e.trajectory is not None else i for i, e in enumerate(episodes)]
        whole = {k: i for i, k in enumerate(dict.fromkeys(parts))}
        n, width = len(episodes), max((len(e.tokens) for e in episodes), default=0)
        return cls(
            episodes=episodes,
            tasks=tasks,
            verdicts=verdicts,
            tokens=pad([e.tokens for e in episodes], width, np.int64),
            mask=pad([e.mask for e in episodes], width, np.bool_),
            logprobs=pad(
                [e.logprobs if e.logprobs is not None else np.full(len(e.tokens), np.nan) for e in episodes],
                width,
                np.float64,
            ).to(dtype),
            prompt_group=torch.tensor([i for i, g in enumerate(groups) for _ in g.episodes], dtype=torch.int64),
            group=torch.tensor([index[k] for k in keys], dtype=torch.int64),
            trajectory=torch.tensor([whole[k] for k in parts], dtype=torch.int64),
            turn=pad([_turns(e) + 1 for e in episodes], width, np.int64) - 1,
            valid=torch.ones(n, dtype=torch.bool),
            rewards=torch.zeros(n, dtype=dtype),
            advantages=torch.zeros(n, width, dtype=dtype),
            weights=torch.ones(n, dtype=dtype),
        )

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def lengths(self) -> Int[Tensor, "N"]:
        """Learnable tokens per sample."""
        return self.mask.sum(-1)

    @property
    def active(self) -> Bool[Tensor, "N"]:
        """Samples that count: valid, with non-zero weight."""
        return self.valid & (self.weights != 0)

    def count(self) -> Totals:
        """Count what is active, see :class:`Totals`."""
        used = self.active & (self.lengths > 0)
        return Totals(
            tokens=float(self.mask[used].sum()),
            sequences=float(used.sum()),
            groups=float(self.group[used].unique().numel()),
            trajectories=float(self.trajectory[used].unique().numel()),
        )

    def rows(self, index: Int[Tensor, "M"]) -> Batch:
        """Return the samples at ``index``, trimmed to their longest response, under the same ``totals``."""
        width = max((len(self.episodes[i].tokens) for i in index.tolist()), default=0)

        def take(value: Any, whole: bool = False) -> Any:
            if isinstance(value, Tensor):
                value = value[index.to(value.device)]
                tokens = value.ndim > 1 and value.shape[1] == self.tokens.shape[1] and not whole
                return value[:, :width] if tokens else value
            if isinstance(value, dict):
                return {k: take(v, k in self.whole) for k, v in value.items()}
            if isinstance(value, Sequence):
                return [value[i] for i in index.tolist()]
            return value

        return Batch(**{f.name: take(getattr(self, f.name)) for f in fields(self)})

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch with every tensor on ``device``."""

        def move(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.to(device)
            return {k: move(v) for k, v in value.items()} if isinstance(value, dict) else value

        return Batch(**{f.name: move(getattr(self, f.name)) for f in fields(self)})


def _turns(episode: Episode) -> np.ndarray:
    """Return the index of each token's turn, -1 where it is none of the policy's."""
    if not episode.turns:
        return np.where(episode.mask, 0, -1)
    out = np.full(len(episode.tokens), -1, dtype=np.int64)
    for turn in episode.turns:
        out[turn.start : turn.end] = turn.index
    return out


def pad(rows: Sequence[np.ndarray], width: int, dtype: Any) -> Tensor:
    """Stack rows of unequal length into ``(N, width)``, zero on the right."""
    out = np.zeros((len(rows), width), dtype=dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)
