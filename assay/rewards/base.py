"""The reward seam: what is a verdict worth?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from assay.batch import Batch, Reward


@runtime_checkable
class RewardPart(Protocol):
    """Maps a judged batch to rewards, detached. It sees the whole batch, hence siblings, ranks and votes.

    A part may set the class attribute ``needs`` (names of signals it reads from ``batch.signals``).
    """

    def __call__(self, batch: Batch) -> Reward: ...
