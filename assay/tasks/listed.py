"""Tasks given as a Python list."""

from __future__ import annotations

from collections.abc import Sequence

from assay.errors import UsageError
from assay.types import Task


class Listed:
    """A source over a list of tasks.

    Raises:
        UsageError: an element is not a :class:`~assay.types.Task`.
    """

    def __init__(self, tasks: Sequence[Task]):
        for i, task in enumerate(tasks):
            if not isinstance(task, Task):
                raise UsageError(
                    f"element {i} of tasks is a {type(task).__name__}; give assay.Task(id=..., prompt=..., "
                    "reference=...), or tables alone"
                )
        self._tasks = list(tasks)

    @property
    def size(self) -> int | None:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[index]
