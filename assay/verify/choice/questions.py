"""Questions with options that belong to a task and are not shown with it, to be asked of others in any order."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its options and which of them is right, from 0."""

    text: str
    options: tuple[str, ...]
    right: int

    def ordered(self, order: Sequence[int]) -> Task:
        """Return the task of choosing among the options in another order: at place i the one that was at ``order[i]``;
        what is right goes with them."""
        options = dict(zip(string.ascii_uppercase, (self.options[i] for i in order), strict=False))
        lines = "".join(f"\n{label}. {text}" for label, text in options.items())
        reference = string.ascii_uppercase[list(order).index(self.right)]
        return Task(self.text, self.text + lines, reference, "choice", meta={"options": options})

    def rotated(self, by: int) -> Task:
        """Return the task in which every option stands ``by`` places further on, the last ones first."""
        n = len(self.options)
        return self.ordered([(i - by) % n for i in range(n)])

    @property
    def row(self) -> dict[str, Any]:
        """It, as a reference has it."""
        return {"question": self.text, "options": list(self.options), "answer": self.options[self.right]}


def questions_of(task: Task) -> list[Question]:
    """Return the questions of ``task.reference["questions"]``: each ``{"question", "options", "answer"}``, where the
    answer is one of two to 26 different options.

    Raises:
        UsageError: there are none, or one is not of this form; says of which task.
    """
    given = task.reference.get("questions") if isinstance(task.reference, Mapping) else None
    found = []
    for row in given if isinstance(given, Sequence) and not isinstance(given, str) else ():
        try:
            options, text = tuple(map(str, row["options"])), str(row["question"])
            right = options.index(str(row["answer"]))
        except (TypeError, KeyError, ValueError):
            right, options, text = 0, (), ""
        if not 2 <= len(set(options)) == len(options) <= 26:
            raise UsageError(
                f"task {task.id}: a question must have 'question', 'options' (2 to 26, all different) and 'answer', "
                f"which is one of these; this is {str(row)[:80]}"
            )
        found.append(Question(text, options, right))
    if not found:
        raise UsageError(f'task {task.id} has no questions; its reference is to be {{"questions": [...]}}')
    return found
