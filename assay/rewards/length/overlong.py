"""DAPO's soft overlong punishment."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part


def response_lengths(batch: Batch) -> Float[Tensor, "N"]:
    """Tokens of each response, learnable or not."""
    return torch.tensor([float(len(e.tokens)) for e in batch.episodes], dtype=batch.rewards.dtype)


@part("reward", "overlong")
@dataclass(frozen=True, slots=True)
class SoftOverlong:
    """R_i = 0 up to max_length - buffer tokens, then falling linearly to -factor at max_length, and -factor beyond.

    A term to be added to another, ``{name = "weighted", terms = {verdict = "verdict", overlong = {...}}}``.

    Source: DAPO (arXiv 2503.14476), equation 13.

    Args:
        max_length: tokens at which the punishment is whole.
        buffer: tokens over which it grows, in [1, max_length].
        factor: the whole punishment.

    Raises:
        UsageError: ``buffer`` out of range.
    """

    max_length: int
    buffer: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.buffer <= self.max_length:
            raise UsageError(f"reward 'overlong': buffer {self.buffer} is outside [1, max_length = {self.max_length}]")

    def __call__(self, batch: Batch) -> Reward:
        over = response_lengths(batch) - (self.max_length - self.buffer)
        values = -self.factor * (over / self.buffer).clamp(0, 1)
        return Reward(values, terms={"overlong": values})
