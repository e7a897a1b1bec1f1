"""The rollout seam: how is a response made?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Engine
from assay.types import Ask, Group


@runtime_checkable
class Rollout(Protocol):
    """Turns asks into groups of episodes by calling an engine, as often as it needs to (turns, probes, branches)."""

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        """Return one unjudged group per ask, in order; every random draw comes from ``rng``.

        Groups whose tasks it made from what it has judged (:attr:`Group.derived`) come after those that were asked;
        a group that has verdicts keeps them.
        """
        ...
