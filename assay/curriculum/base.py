"""The curriculum seam: what do we ask next, how often, with which hint?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from assay.types import Ask, Group, Task


@runtime_checkable
class Stream(Protocol):
    """An endless supply of training tasks."""

    def next(self, n: int) -> list[Task]:
        """Return the next ``n`` tasks."""
        ...


@runtime_checkable
class Curriculum(Protocol):
    """Chooses what to ask and learns from what came back. Its state is in the checkpoint.

    Optional method: ``check(tasks)`` raises UsageError where it cannot act on what is known of the tasks before a run.
    """

    def next(self, step: int) -> list[Ask]:
        """Return the asks of training step ``step`` (0-based)."""
        ...

    def observe(self, groups: Sequence[Group]) -> None:
        """Take note of the judged groups of a step, as :func:`unaided` has them."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def unaided(groups: Iterable[Group]) -> list[Group]:
    """Return what the policy did by itself with what was asked: no group that a rollout derived, and of one whose
    responses were changed since (hints, retries, a teacher's) the one before."""
    return [group.before or group for group in groups if not group.derived]
