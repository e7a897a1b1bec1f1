"""Every training task equally often, in the order of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.curriculum.base import Stream
from assay.registry import part
from assay.types import Ask, Group


@part("curriculum", "uniform")
@dataclass(slots=True)
class Uniform:
    """The next ``prompts`` tasks of the stream, ``group`` responses to each.

    Args:
        stream: endless, resumable supply of training tasks.
        prompts: tasks per step.
        group: responses per task.
    """

    stream: Stream
    prompts: int
    group: int

    def next(self, step: int) -> list[Ask]:
        return [Ask(task, self.group) for task in self.stream.next(self.prompts)]

    def observe(self, groups: Sequence[Group]) -> None:
        """A uniform curriculum learns nothing from the groups."""

    def state_dict(self) -> dict[str, Any]:
        """Empty: the trainer keeps the stream's position."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""
