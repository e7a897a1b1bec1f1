"""The inference seam: what do we do at test time?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Engine
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class Answer:
    """A strategy's final response, the samples it was made from and the tokens it cost."""

    text: str
    episodes: tuple[Episode, ...]
    tokens: int
    meta: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Strategy(Protocol):
    """Answers tasks with an engine under a budget of ``samples`` responses per task."""

    def __call__(self, tasks: list[Task], engine: Engine, samples: int, rng: np.random.Generator) -> list[Answer]: ...
