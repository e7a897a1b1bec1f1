"""How often each task was solved, whenever it was asked: a history that the curricula of a run share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.types import Group

Look = tuple[int, int, int]
"""A step (0-based), and of the task's responses in it those that were right and those that were judged."""


class PassRates:
    """Per task id, what came of its latest asks, in all stages of a run.

    The trainer notes every step's judged groups; a curriculum that takes ``history`` is given the run's. Abstentions
    count neither way. Nothing is kept where no curriculum reads it.

    Args:
        kept: looks at a task that are remembered, the latest.
    """

    def __init__(self, kept: int = 16):
        self.kept = kept
        self.read = False
        """Whether some curriculum of the run reads it."""
        self._looks: dict[str, tuple[Look, ...]] = {}

    def note(self, step: int, groups: Iterable[Group]) -> None:
        """Take in the judged groups of a step; those of one task are one look."""
        found: dict[str, list[bool]] = {}
        for group in groups:
            passed = [v.passed for v in group.verdicts if v.passed is not None]
            found.setdefault(group.task.id, []).extend(passed)
        for task, passed in found.items():
            if passed:
                look = (step, sum(passed), len(passed))
                self._looks[task] = (*self._looks.get(task, ()), look)[-self.kept :]

    def looks(self, task: str) -> Sequence[Look]:
        """What is remembered of a task, the oldest first."""
        return self._looks.get(task, ())

    def rate(self, task: str, since: int = 0) -> float | None:
        """Share of the task's judged responses from step ``since`` on that were right; ``None`` without any."""
        looks = [(right, judged) for step, right, judged in self.looks(task) if step >= since]
        return sum(right for right, _ in looks) / sum(judged for _, judged in looks) if looks else None

    def failed(self, task: str, latest: int) -> int:
        """Of the ``latest`` looks at a task, those in which no response was right."""
        return sum(right == 0 for _, right, _ in self.looks(task)[-latest:])

    def state_dict(self) -> dict[str, Any]:
        return {"looks": dict(self._looks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._looks = {task: tuple(tuple(look) for look in looks) for task, looks in state["looks"].items()}
