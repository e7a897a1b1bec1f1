"""Rewards bent into another shape: clipped, in tiers, through a log-sigmoid, annealed, standardised by source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


class Bent(Around):
    """A reward that is a function of one other, value by value; rewards on tokens pass through as they are.

    Args:
        inner: a reward part (name, table or part already made).
    """

    def __init__(self, inner: Any = "verdict"):
        super().__init__({"raw": inner})

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        """Return what the values become."""
        raise NotImplementedError

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        values = self.bend(found["raw"].values, batch)
        return Reward(values, found["raw"].tokens, valid_in(found, batch), {**terms_of(found), "bent": values})


@part("reward", "clipped")
class Clipped(Bent):
    """R_i = min(max(r_i, low), high).

    Args:
        inner: the reward r.
        low, high: bounds.

    Raises:
        UsageError: ``low`` above ``high``.
    """

    def __init__(self, inner: Any = "verdict", low: float = -1.0, high: float = 1.0):
        if low > high:
            raise UsageError(f"reward 'clipped': low {low:g} is above high {high:g}")
        super().__init__(inner)
        self.low, self.high = low, high

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        return values.clamp(self.low, self.high)


@part("reward", "tiers")
class Tiers(Bent):
    """R_i = worth[k] for r_i in [edges[k-1], edges[k]): k is how many edges r_i reaches.

    Args:
        inner: the reward r.
        edges: rising; the quarters of [0, 1] by default.
        worth: one more than there are edges; k / number of edges by default.

    Raises:
        UsageError: edges that do not rise, or not one more worth than edges.
    """

    def __init__(
        self,
        inner: Any = "verdict",
        edges: Sequence[float] = (0.25, 0.5, 0.75),
        worth: Sequence[float] | None = None,
    ):
        self.edges = [float(e) for e in edges]
        self.worth = [k / max(len(self.edges), 1) for k in range(len(self.edges) + 1)] if worth is None else list(worth)
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise UsageError(f"reward 'tiers': edges {self.edges} do not rise")
        if len(self.worth) != len(self.edges) + 1:
            raise UsageError(
                f"reward 'tiers': {len(self.edges)} edges part {len(self.edges) + 1} tiers, give each worth"
            )
        super().__init__(inner)

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        tier = torch.bucketize(values, torch.tensor(self.edges, dtype=values.dtype), right=True)
        return torch.tensor(self.worth, dtype=values.dtype)[tier]


@part("reward", "log_sigmoid")
class LogSigmoid(Bent):
    """R_i = log sigmoid((r_i - centre) / scale): bounded above by 0, so that beating the centre by far earns little.

    A sum of such terms is a soft conjunction: one bad term is not made up for by others.

    Args:
        inner: the reward r.
        centre: of a reference response, say.
        scale: above 0.

    Raises:
        UsageError: ``scale`` not above 0.
    """

    def __init__(self, inner: Any = "verdict", centre: float = 0.0, scale: float = 1.0):
        if scale <= 0:
            raise UsageError(f"reward 'log_sigmoid': scale {scale:g} must be above 0")
        super().__init__(inner)
        self.centre, self.scale = centre, scale

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        return torch.nn.functional.logsigmoid((values - self.centre) / self.scale)


@part("reward", "annealed")
class Annealed(Bent):
    """R_i = w r_i, w from ``start`` to ``end`` over ``steps`` batches, constant after. The count is in the checkpoint.

    Args:
        inner: the reward r.
        start, end: weights.
        steps: batches from one to the other, 1 or more.
        shape: ``linear``, or half a ``cosine``.

    Raises:
        UsageError: ``steps`` below 1.
    """

    def __init__(
        self,
        inner: Any = "verdict",
        start: float = 1.0,
        end: float = 0.0,
        steps: int = 100,
        shape: Literal["linear", "cosine"] = "linear",
    ):
        if steps < 1:
            raise UsageError(f"reward 'annealed': steps {steps} must be 1 or more")
        super().__init__(inner)
        self.start, self.end, self.steps, self.shape, self.done = start, end, steps, shape, 0

    @property
    def weight(self) -> float:
        share = min(self.done / self.steps, 1.0)
        share = share if self.shape == "linear" else (1 - math.cos(math.pi * share)) / 2
        return self.start + (self.end - self.start) * share

    def __call__(self, batch: Batch) -> Reward:
        weight, reward = self.weight, super().__call__(batch)
        self.done += 1
        if reward.tokens is not None:
            reward.tokens = weight * reward.tokens
        reward.terms["weight"] = torch.full_like(reward.values, weight)
        return reward

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        return self.weight * values

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = int(state["done"])


@part("reward", "per_source")
class PerSource(Bent):
    """R_i = (r_i - m_s) / (sd_s + epsilon), mean and deviation over all rewards seen so far from the task's source s.

    The source is ``task.meta[key]``; tasks without one are a source of their own. The batch at hand counts, so that the
    first is standardised by itself. The counts are in the checkpoint.

    Args:
        inner: the reward r.
        key: of ``task.meta``.
        centre: subtract the mean.
        epsilon: added to the deviation.
    """

    def __init__(self, inner: Any = "verdict", key: str = "source", centre: bool = True, epsilon: float = 1e-6):
        super().__init__(inner)
        self.key, self.centre, self.epsilon = key, centre, epsilon
        self.seen: dict[str, list[float]] = {}

    def bend(self, values: Float[Tensor, "N"], batch: Batch) -> Float[Tensor, "N"]:
        sources = [str(task.meta.get(self.key, "")) for task in batch.tasks]
        valid = self._valid.tolist()
        for source, value, use in zip(sources, values.tolist(), valid, strict=True):
            if use:
                # Welford's update, which stays exact where mean and deviation differ by orders of magnitude.
                count, mean, square = self.seen.get(source, [0.0, 0.0, 0.0])
                count += 1
                gap = value - mean
                mean += gap / count
                self.seen[source] = [count, mean, square + gap * (value - mean)]
        out = []
        for source, value in zip(sources, values.tolist(), strict=True):
            count, mean, square = self.seen.get(source, [0.0, 0.0, 0.0])
            deviation = math.sqrt(square / count) if count else 0.0
            out.append((value - mean * self.centre) / (deviation + self.epsilon) if deviation > 0 else 0.0)
        return torch.tensor(out, dtype=values.dtype)

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        self._valid = valid_in(found, batch)
        values = self.bend(found["raw"].values, batch)
        return Reward(values, found["raw"].tokens, self._valid, {**terms_of(found), "bent": values})

    def state_dict(self) -> dict[str, Any]:
        return {"seen": {source: list(counts) for source, counts in self.seen.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = {source: list(counts) for source, counts in state["seen"].items()}
