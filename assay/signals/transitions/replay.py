"""Transitions of all policies so far, the latest of them, to draw from."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import turns_of
from assay.types import Turn


@dataclass(frozen=True, slots=True)
class Transition:
    """A step: in state s action a was taken, earned r, and led to s'.

    Attributes:
        state, action, after: arrays; of a policy of tokens all tokens before a turn, those of the turn, and all before
            the next turn. ``after`` is empty where the episode ended, which ``done`` says.
        reward: r.
        done: nothing comes after it, so that nothing is bootstrapped.
    """

    state: np.ndarray
    action: np.ndarray
    reward: float
    after: np.ndarray
    done: bool


class Replay:
    """The last ``capacity`` transitions.

    Args:
        capacity: at least 1; the oldest go first.

    Raises:
        UsageError: ``capacity`` below 1.
    """

    def __init__(self, capacity: int = 100_000):
        if capacity < 1:
            raise UsageError(f"a replay buffer holds at least 1 transition, not {capacity}")
        self.kept: deque[Transition] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self.kept)

    def add(self, transitions: Sequence[Transition]) -> None:
        self.kept.extend(transitions)

    def draw(self, count: int, rng: np.random.Generator) -> list[Transition]:
        """Return ``count`` transitions, drawn uniformly with replacement."""
        return [self.kept[i] for i in rng.integers(len(self.kept), size=count)]

    def state_dict(self) -> dict[str, Any]:
        """Plain data and tensors, as checkpoints hold them."""
        kept = [
            {k: torch.from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for k, v in asdict(t).items()}
            for t in self.kept
        ]
        return {"capacity": self.kept.maxlen, "kept": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        rows: list[dict[str, Any]] = [
            {k: v.numpy() if isinstance(v, Tensor) else v for k, v in t.items()} for t in state["kept"]
        ]
        self.kept = deque((Transition(**row) for row in rows), maxlen=state["capacity"])


def transitions_of(batch: Batch) -> list[Transition]:
    """Return the turns of a batch's valid samples as transitions, each with what it earned (:func:`turns_of`).

    A response without turns is one. Where a trajectory stands in several samples, a turn's next state is where the next
    one begins, in whichever sample that is. Across a turn's ``reset`` nothing flows. Turns whose oracle abstained are
    left out, as what they earned is not known.
    """
    table = turns_of(batch)
    trajectory, sample = table.trajectory.tolist(), table.sample.tolist()
    found = []
    for m, turn in enumerate(table.records):
        if not bool(batch.valid[sample[m]]) or not bool(table.told[m]) or turn.end == turn.start:
            continue
        follows = m + 1 < len(table) and trajectory[m + 1] == trajectory[m] and not turn.reset
        after = _before(batch, sample[m + 1], table.records[m + 1]) if follows else np.zeros(0, dtype=np.int64)
        action = batch.episodes[sample[m]].tokens[turn.start : turn.end]
        reward = float(table.rewards[m])
        found.append(Transition(_before(batch, sample[m], turn), action, reward, after, not follows))
    return found


def _before(batch: Batch, sample: int, turn: Turn) -> np.ndarray:
    """All tokens that a turn was sampled after."""
    episode = batch.episodes[sample]
    return np.concatenate([episode.prompt, episode.tokens[: turn.start]])
