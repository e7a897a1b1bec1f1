"""Some tasks of a source more often than others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.registry import build, part
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "repeated")
class Repeated:
    """Every task of a source as many times as its ``meta[key]`` has it, copies side by side.

    A copy but the first has the id of its task with ``#2``, ``#3``, ... behind it. The stream reads a sized source in a
    random order, so copies are spread over an epoch; a problem that is held out is held out with all its copies.

    Args:
        source: a task source, or the specification of one.
        times: of a value of ``meta[key]``, written as text, how many times.
        key: of ``task.meta``.
        otherwise: how many times for values that are not named; 0 leaves them out.
        first: take so many tasks of the source and no more; an endless one needs it.

    Raises:
        UsageError: the source has no end, or fewer tasks than ``first``; a number is negative, or nothing is left.
    """

    def __init__(
        self,
        source: Any,
        times: Mapping[str, int],
        key: str = "difficulty",
        first: int | None = None,
        otherwise: int = 1,
    ):
        self.source = build("tasks", source)
        size = self.source.size if first is None else first
        if size is None:
            raise UsageError("tasks 'repeated' counts the tasks of its source, and that has no end; say first = ...")
        if self.source.size is not None and size > self.source.size:
            raise UsageError(f"tasks 'repeated': first = {size} of a source of {self.source.size} tasks")
        if wrong := next((n for n in (*times.values(), otherwise) if n < 0), None):
            raise UsageError(f"tasks 'repeated': a task cannot be there {wrong} times")
        counts = [times.get(str(self.source[i].meta.get(key)), otherwise) for i in range(size)]
        self._ends = np.cumsum(counts)
        if not len(counts) or self._ends[-1] == 0:
            raise UsageError("tasks 'repeated': no task is left")

    @property
    def size(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Task:
        place = int(np.searchsorted(self._ends, check_index(index, self.size), side="right"))
        task = self.source[place]
        copy = index - (int(self._ends[place - 1]) if place else 0)
        return task if copy == 0 else replace(task, id=f"{task.id}#{copy + 1}")
