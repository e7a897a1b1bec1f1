"""A fixed set of different tasks of a stream, which a checkpoint keeps as places in it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.curriculum.base import Stream
from assay.errors import RunError, UsageError
from assay.types import Task

PATIENCE = 20
"""Times the size that are drawn from the stream, at most, to find so many different tasks."""


@dataclass(slots=True)
class Pool:
    """The first ``size`` different tasks of a stream, by id; or all that a sized source has to train on.

    Args:
        stream: that they are taken from, once.
        size: how many; ``None`` for all, wherever the stream stands.
        who: whom errors speak of.
    """

    stream: Stream
    size: int | None
    who: str
    tasks: dict[str, Task] = field(default_factory=dict, init=False)
    _places: dict[str, Mapping[str, Any]] = field(default_factory=dict, init=False)

    def check(self) -> None:
        """Raise UsageError where all tasks are wanted of a source that has no end."""
        source: Any = getattr(self.stream, "source", None)
        if self.size is None and source is not None and source.size is None:
            raise UsageError(
                f"{self.who} looks at all tasks, and their source is endless; set pool to a number of them"
            )

    def gather(self) -> list[str]:
        """Take them, and return their ids.

        Raises:
            RunError: the stream has not so many.
        """
        if self.size is None:
            self.check()
            self.tasks = {task.id: task for task in self.stream.all()}  # type: ignore[attr-defined]  # a sized source's
            return list(self.tasks)
        for _ in range(PATIENCE * self.size):
            if len(self.tasks) == self.size:
                break
            where = dict(getattr(self.stream, "state_dict", dict)())
            [task] = self.stream.next(1)
            if task.id not in self.tasks:
                self.tasks[task.id], self._places[task.id] = task, where
        if len(self.tasks) < self.size:
            raise RunError(
                f"{self.who}: pool = {self.size}, and the tasks have {len(self.tasks)} different ones to train on; "
                "lower it"
            )
        return list(self.tasks)

    def state_dict(self) -> dict[str, Any]:
        return {"places": [[key, dict(where)] for key, where in self._places.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.size is None:
            self.tasks = {}
            return
        # A stream of its own reads the tasks again, the run's keeps its place.
        stream: Any = copy.copy(self.stream)
        self._places, self.tasks = dict(state["places"]), {}
        for key, where in self._places.items():
            stream.load_state_dict(where)
            [self.tasks[key]] = stream.next(1)
