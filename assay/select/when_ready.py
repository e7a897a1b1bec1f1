"""Nothing is learned from until what the method is to go by has been learned itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import build, part
from assay.signals.base import Signal


@part("select", "when_ready")
@dataclass(frozen=True, slots=True)
class WhenReady:
    """Weight 0 for every sample while a signal collects what it is fitted to, 1 from then on.

    So that the samples it collects are those of the policy that the run began with.

    Args:
        signal: with an attribute ``ready``, such as ``outcome_verifier`` or ``prompt_value``.

    Raises:
        UsageError: a signal that is always ready.
    """

    signal: Any = "outcome_verifier"

    def __post_init__(self) -> None:
        object.__setattr__(self, "signal", build("signal", self.signal))
        if not hasattr(self.signal, "ready"):
            raise UsageError(f"select 'when_ready': the signal {self.signal!r} is not fitted first; leave it out")

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self.signal})

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.full_like(batch.rewards, float(self.signal.ready))
