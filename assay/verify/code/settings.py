"""What the judges of programs are told beside the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.sandbox import Limits, Sandbox
from assay.verify.code.limits import task_limits
from assay.verify.code.text import TextRule
from assay.verify.code.values import NumberRule, ValueRule
from assay.verify.code.worth import Worth


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of one run, how much to run, and how to compare.

    Attributes:
        limits: of one process of the program; see :meth:`limits_of`.
        factor: what a test's own time limit is multiplied with, for the language.
        total: processor seconds of all its processes together; tests beyond it have failed.
        stop: end after the first failure; ``None``: only the tests of its group.
        comparing: a task's own comparer of values: ``source`` and ``function`` of value, expected value and arguments.
    """

    box: Sandbox
    limits: Limits
    total: float
    stop: bool | None
    text: TextRule
    values: ValueRule
    relative: float
    absolute: float
    checker: Mapping[str, Any] | None = None
    interactor: Mapping[str, Any] | None = None
    comparing: Mapping[str, Any] | None = None
    numbers: NumberRule = "strict"
    factor: float = 1.0
    worth: Worth = field(default_factory=Worth)

    def limits_of(self, own: Mapping[str, Any]) -> Limits:
        """The limits of a test that has limits of its ``own``."""
        return task_limits(self.limits, own, self.factor) if own else self.limits

    def enough(self, name: str, passed: bool, lost: set[str]) -> bool:
        """Whether nothing more need be run after a test; ``lost`` gathers the groups that have no points left."""
        if not passed and name in self.worth.groups:
            lost.add(self.worth.groups[name])
        return bool(self.stop) and not passed

    def skips(self, name: str, lost: set[str]) -> bool:
        """Whether a test need not be run, because its group is lost already."""
        return self.stop is None and self.worth.groups.get(name, "") in lost
