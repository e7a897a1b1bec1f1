"""What learns: anything that makes a sequence of stochastic decisions with log-probabilities."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch


@dataclass(slots=True)
class PolicyOutput:
    """One pass of a policy over a batch: log-probabilities of its tokens, and named quantities beside them.

    ``logprobs`` is ``(N, T)``, zero outside the responses; ``live`` holds what was asked for (``entropy`` ``(N, T)``).
    """

    logprobs: Float[Tensor, "N T"]
    live: dict[str, Tensor] = field(default_factory=dict)


@runtime_checkable
class Policy(Protocol):
    """A trainable policy over the ``(N, T)`` decisions of a batch."""

    quantities: frozenset[str]
    """Names that ``forward`` can compute beside log-probabilities."""

    module: torch.nn.Module
    """Holds the parameters."""

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """Log-probabilities of the batch's tokens under the current weights, with gradient, after temperature."""
        ...

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """Partition the rows of a batch so that a pass over each part computes about ``budget`` tokens."""
        ...

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and whatever is needed to load the policy again."""
        ...

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save` wrote."""
        ...

    def frozen(self, folder: Path) -> Policy:
        """Return a policy that keeps the weights :meth:`save` wrote to ``folder``."""
        ...
