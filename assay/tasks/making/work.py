"""What a pipeline is made of: steps that make tasks from a task, asking models, and steps over all tasks at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Sampling
from assay.engines.writing import WRITING
from assay.errors import UsageError
from assay.types import Prompt, Stop, Task, Verdict


@dataclass(frozen=True, slots=True)
class Want:
    """``n`` replies that a step asks for.

    Attributes:
        prompt: what is asked.
        n: how many replies.
        sampling: how they are drawn.
        by: the role of who is asked: ``writer``, ``judge``, ``solver`` or another that the pipeline has a model for.
    """

    prompt: Prompt
    n: int = 1
    sampling: Sampling = WRITING
    by: str = "writer"


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its text, its length in tokens, and why it ended."""

    text: str
    tokens: int
    stop: Stop


@dataclass(frozen=True, slots=True)
class Dropped:
    """What comes of a task that a step leaves out, with the reason, which is counted."""

    reason: str


@dataclass(frozen=True, slots=True)
class Here:
    """What a step is given beside its task.

    Attributes:
        rng: of its own, which depends on the run's seed, the step and the task alone.
        judge: the verifier of each task's kind.
    """

    rng: np.random.Generator
    judge: Callable[[Task, str], Verdict]


Outcome = Task | Sequence[Task] | Dropped
"""What comes of a task: itself, another or several in its place, or nothing."""
Work = Generator[Sequence[Want], list[list[Reply]], Outcome]
"""Asks, and is sent the replies to each want, in order; again as often as it likes. Everything that is not in the
replies has to follow from its task and from :class:`Here`: it is done anew where a pipeline goes on."""


class Each(Protocol):
    """A step on one task; it asks, or says at once what comes of it.

    Optional method: ``check(tasks)``, of the first step, raises UsageError where these are no tasks that it can act on.
    """

    def __call__(self, task: Task, here: Here) -> Work | Outcome: ...


@runtime_checkable
class Whole(Protocol):
    """A step on all tasks at once: it waits for the last, and asks nobody."""

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        """Return the tasks that go on, and how many were left out for each reason."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps by name, in order: ``assay tasks make`` runs one, a paper may be one.

    Args:
        name: of the pipeline.
        steps: pairs of a name, which stands in the card and in what is remembered, and an :class:`Each` or a
            :class:`Whole`.

    Raises:
        UsageError: no steps, or two of one name.
    """

    name: str
    steps: Sequence[tuple[str, Any]]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.steps]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"pipeline {self.name} needs steps, each of a name of its own, not {', '.join(names)}")

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for tasks that the first step cannot act on, or of which two have one id."""
        if twice := [id for id, n in Counter(task.id for task in tasks).items() if n > 1]:
            raise UsageError(f"two of the tasks that {self.name} begins with have the id {twice[0]!r}; ids are unique")
        if not tasks:
            raise UsageError(f"there are no tasks for {self.name} to begin with")
        if callable(check := getattr(self.steps[0][1], "check", None)):
            check(tasks)


@dataclass(slots=True)
class StepCount:
    """What a step did: tasks in and out, those left out by reason, wants, and tokens of the replies."""

    into: int = 0
    out: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    tokens: int = 0


def child(task: Task, step: str, number: int, **changes: Any) -> Task:
    """Return a task made from another by a step, whose parent it names.

    Args:
        task: that it is made from.
        step: what made it; the id is ``parent/step-number``.
        number: among the children of that task and step.
        changes: to the fields of the parent; ``meta`` is added to its meta.
    """
    meta = {**task.meta, **changes.pop("meta", {})}
    meta |= {"parents": (task.id,), "made": (*task.meta.get("made", ()), step)}
    return replace(task, id=f"{task.id}/{step}-{number}", parent=None, meta=meta, **changes)


def noted(task: Task, **facts: Any) -> Task:
    """Return a task with facts added to its meta."""
    return replace(task, meta={**task.meta, **facts})


def whole_replies(replies: Sequence[Reply]) -> list[str]:
    """Return the texts of replies that were not cut off."""
    return [reply.text for reply in replies if reply.stop in ("eos", "stop")]
