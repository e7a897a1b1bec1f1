"""A reward that a signal says of whole responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.batch import Batch, Reward
from assay.registry import build, part


@part("reward", "signalled")
class Signalled:
    """R_i is what a signal ``(N,)`` says of response i, whatever its verdict.

    Args:
        signal: by name, with its options, or as an object.
    """

    def __init__(self, signal: str | Mapping[str, Any] | Any):
        self.signal = build("signal", signal)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal})

    def __call__(self, batch: Batch) -> Reward:
        values = batch.signals[self.signal.name]
        return Reward(values, terms={self.signal.name: values})
