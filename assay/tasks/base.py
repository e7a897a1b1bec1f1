"""The tasks seam: what could be asked?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from assay.types import Task


@runtime_checkable
class TaskSource(Protocol):
    """A seeded, addressable supply of tasks, sized or endless.

    ``source[i]`` is the i-th task: the same i gives the same task on every machine, in any order of access, so that a
    stream's position is one integer. ``len(source)`` is the number of tasks, or ``None`` from :attr:`size` when the
    source is endless (``source[i]`` then accepts every i >= 0).
    """

    @property
    def size(self) -> int | None:
        """Number of tasks, or ``None`` if endless."""
        ...

    def __getitem__(self, index: int) -> Task: ...
