"""What the judges of programs are told beside the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.sandbox import Limits, Sandbox
from assay.verify.code.text import TextRule
from assay.verify.code.values import ValueRule


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of one run, how much to run, and how to compare.

    Attributes:
        limits: of one process of the program.
        total: processor seconds of all its processes together; tests beyond it have failed.
        stop: end after the first failure.
        comparing: a task's own comparer of values: ``source`` and ``function`` of value, expected value and arguments.
    """

    box: Sandbox
    limits: Limits
    total: float
    stop: bool
    text: TextRule
    values: ValueRule
    relative: float
    absolute: float
    checker: Mapping[str, Any] | None = None
    interactor: Mapping[str, Any] | None = None
    comparing: Mapping[str, Any] | None = None
