"""A line of the table of verifiers to be fuzzed: its options, valid tasks with right answers, and what holds of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task
from assay.verify.base import Verifier

ENTRIES: dict[str, Entry] = {}


class Missing(Exception):
    """A package or program that a verifier needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class Case:
    """A valid task and responses that are right without any marker; ``[]`` where only abstentions are right."""

    reference: Any
    answers: Sequence[str]
    prompt: str = "What is it?"
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """How one verifier is fuzzed.

    Attributes:
        kind: its registered name.
        cases: valid tasks; each answer has to be accepted, and is what responses are made of.
        soup: the name of the grammar (:mod:`fuzz.soups`) that responses of its own sort come from.
        options: of the verifier, besides its name; what takes time to make as a function without arguments.
        seconds: processor time for a response of 100 kB, all its worker processes included.
        marked: a right answer in each of its ``rules`` is right, too.
        spaces: white space at the end changes nothing.
        apart: no right answer of one case is right for another.
        share: of the examples asked for, less than 1 where each starts programs.
        abstains: why it may abstain on a valid task, ``None`` if it never may.
        needs: modules without which it cannot be made.
    """

    kind: str
    cases: Sequence[Case]
    soup: str = "text"
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 2.0
    marked: bool = True
    spaces: bool = True
    apart: bool = True
    share: float = 1.0
    abstains: str | None = None
    needs: tuple[str, ...] = ()

    def make(self) -> Verifier:
        """Return the verifier; raise Missing where what it needs is not installed, UsageError for wrong options."""
        for module in self.needs:
            if importlib.util.find_spec(module) is None:
                raise Missing(f"{module} is not installed")
        try:
            options = {key: value() if callable(value) else value for key, value in self.options.items()}
            verifier: Verifier = build("verify", {"name": self.kind, **options})
        except UsageError as error:
            if " needs " in str(error) or "not installed" in str(error):
                raise Missing(str(error)) from None
            raise
        return verifier

    def task(self, case: Case) -> Task:
        return Task(f"{self.kind}-{self.cases.index(case)}", case.prompt, case.reference, self.kind, meta=case.meta)


def entry(name: str, kind: str | None = None, **how: Any) -> None:
    """Add a line: ``name`` is the kind, or ``kind/variant`` for the same kind with other options."""
    if name in ENTRIES:
        raise ValueError(f"{name!r} stands twice in the table")
    ENTRIES[name] = Entry(kind or name.partition("/")[0], **how)
