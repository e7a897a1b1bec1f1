"""Twin critics of actions and of states, each learned from the slow copy of the other."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import UsageError


class TokenEncoder(torch.nn.Module):
    """e(x): the mean of learned vectors of a sequence's runs of 1 to ``order`` tokens, and of the sequence as a whole.

    Runs are hashed into ``buckets``. As the whole sequence is one of them, a critic on it can tell any two states
    apart, and what it shares between states it learns from the runs they share.
    """

    def __init__(self, width: int = 64, order: int = 3, buckets: int = 2**14):
        super().__init__()
        if min(width, order, buckets) < 1:
            raise UsageError(
                f"an encoder needs width, order and buckets of at least 1, not {width}, {order}, {buckets}"
            )
        self.width, self.order, self.buckets = width, order, buckets
        self.vectors = torch.nn.EmbeddingBag(buckets, width, mode="mean")

    def forward(self, sequences: Sequence[np.ndarray]) -> Float[Tensor, "M D"]:
        rows = [hashed(np.asarray(x, dtype=np.int64).tobytes(), self.order) % self.buckets for x in sequences]
        starts = np.cumsum([0, *(len(r) for r in rows[:-1])])
        device = self.vectors.weight.device
        flat = torch.from_numpy(np.concatenate(rows)).to(device)
        found: Tensor = self.vectors(flat, torch.from_numpy(starts).to(device))
        return found


@functools.lru_cache(maxsize=2**16)
def hashed(tokens: bytes, order: int) -> np.ndarray:
    """Return hashes of a sequence of int64 tokens as a whole, and of its runs of 1 to ``order`` tokens."""
    size = np.dtype(np.int64).itemsize
    count = len(tokens) // size
    runs = [tokens[i * size : (i + n) * size] for n in range(1, order + 1) for i in range(count - n + 1)]
    return np.array([zlib.crc32(b"whole" + tokens), *map(zlib.crc32, runs)], dtype=np.int64)


def head(inputs: int, width: int) -> torch.nn.Sequential:
    """A network of three layers that ends in one number."""
    layers = [torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


class Twins(torch.nn.Module):
    """Q_1, Q_2 of states and actions, V_1, V_2 of states, on one encoder; and a slow copy of all of it.

        y_Qk = r + (1 - done) discount V'_k(s')        y_Vk = Q'_k(s, a~),  a~ drawn from the policy as it is now
        L = sum_k (Q_k(s, a) - y_Qk)^2 + (V_k(s) - y_Vk)^2,  means over the transitions
        slow <- (1 - rate) slow + rate fast

    The targets are the slow copy's and constants. They need no action that the transitions took, so transitions of any
    policy will do.

    Args:
        encoder: states and actions as vectors; it has a ``width``.
        width: of the hidden layers.
        discount: in [0, 1], per transition.
        rate: tau, in (0, 1].

    Raises:
        UsageError: ``discount`` or ``rate`` out of range.

    Source: ArCHer (arXiv 2402.19446), equations 3 and 4, and its authors' code.
    """

    def __init__(self, encoder: torch.nn.Module, width: int = 128, discount: float = 0.95, rate: float = 0.1):
        super().__init__()
        if not 0 <= discount <= 1 or not 0 < rate <= 1:
            raise UsageError(f"critics: discount {discount:g} must be in [0, 1] and rate {rate:g} in (0, 1]")
        self.discount, self.rate = discount, rate
        size = int(encoder.width)  # type: ignore[arg-type]
        self.fast = torch.nn.ModuleDict(
            {
                "encoder": encoder,
                **{f"q{k}": head(2 * size, width) for k in (1, 2)},
                **{f"v{k}": head(size, width) for k in (1, 2)},
            }
        )
        self.slow = deepcopy(self.fast).requires_grad_(False)

    def q(
        self, states: Sequence[np.ndarray], actions: Sequence[np.ndarray], slow: bool = False
    ) -> Float[Tensor, "2 M"]:
        nets = self.slow if slow else self.fast
        both = torch.cat([nets["encoder"](states), nets["encoder"](actions)], -1)
        return torch.stack([nets[f"q{k}"](both)[:, 0] for k in (1, 2)])

    def v(self, states: Sequence[np.ndarray], slow: bool = False) -> Float[Tensor, "2 M"]:
        nets = self.slow if slow else self.fast
        encoded = nets["encoder"](states)
        return torch.stack([nets[f"v{k}"](encoded)[:, 0] for k in (1, 2)])

    def loss(
        self,
        states: Sequence[np.ndarray],
        actions: Sequence[np.ndarray],
        rewards: Float[Tensor, "M"],
        after: Sequence[np.ndarray],
        done: Bool[Tensor, "M"],
        fresh: Sequence[np.ndarray],
    ) -> Float[Tensor, ""]:
        """Return L; ``fresh`` are actions that the policy as it is now draws in ``states``."""
        with torch.no_grad():
            of_actions = targets(rewards, done, self.v(after, slow=True), self.discount)
            of_states = self.q(states, fresh, slow=True)
        errors = (self.q(states, actions) - of_actions) ** 2 + (self.v(states) - of_states) ** 2
        return errors.sum(0).mean()

    @torch.no_grad()
    def follow(self) -> None:
        """Let the slow copy follow."""
        for slow, fast in zip(self.slow.parameters(), self.fast.parameters(), strict=True):
            slow.lerp_(fast, self.rate)

    @torch.no_grad()
    def advantage(self, states: Sequence[np.ndarray], actions: Sequence[np.ndarray]) -> Float[Tensor, "M"]:
        """Return A = min(Q_1, Q_2)(s, a) - min(V_1, V_2)(s)."""
        return pessimistic(self.q(states, actions), self.v(states))


def targets(
    rewards: Float[Tensor, "M"], done: Bool[Tensor, "M"], after: Float[Tensor, "K M"], discount: float
) -> Float[Tensor, "K M"]:
    """r + (1 - done) discount V(s'), for each of K critics."""
    return rewards + torch.where(done, 0.0, discount * after)


def pessimistic(q: Float[Tensor, "2 M"], v: Float[Tensor, "2 M"]) -> Float[Tensor, "M"]:
    """The smaller of two values of the action less the smaller of two of the state."""
    return q.min(0).values - v.min(0).values
