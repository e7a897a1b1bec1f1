"""The number of the first wrong step of a solution, or that none is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import extract

TEMPLATE = r"""Question:
{question}

A solution in numbered steps:
{steps}

Find the first step that is wrong, reasoning included. Write its number as \boxed{{number}}, or \boxed{{-1}} if every
step is right."""

INDEX_DIGITS = 9


@part("verify", "step_index")
@dataclass(frozen=True, slots=True)
class StepIndex:
    r"""Right iff the last box of a response holds the index of the first wrong step, -1 for none.

    ``task.reference`` is that index, from 0. A response without a whole number in a box is wrong; ``parts["readable"]``
    tells it from one that names another step. Abstains on a task without an index. Where a solution was called right
    or wrong rightly, though another step was named, ``parts["outcome"]`` is 1.

    Source: the labels of ProcessBench (arXiv 2412.06559).
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        truth = whole_number(str(task.reference))
        if truth is None or truth < -1:
            return Verdict.abstain(
                f"task {task.id} has the reference {task.reference!r}, not the index of a step or -1"
            )
        found = whole_number(extract(response, ("boxed",), "none") or "")
        if found is None:
            return Verdict(0.0, False, {"readable": 0.0, "outcome": 0.0}, r"no whole number in \boxed{}")
        parts = {"readable": 1.0, "outcome": float((found == -1) == (truth == -1))}
        feedback = "" if found == truth else f"named {found}, it is {truth}"
        return Verdict(float(found == truth), found == truth, parts, feedback)


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is; ``None`` for anything else."""
    text = text.strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= INDEX_DIGITS else None


def first_error(reply: str, steps: int) -> int | None:
    """Return the index in the reply's last box, -1 or below ``steps``; ``None`` where there is no such index."""
    index = whole_number(extract(reply, ("boxed",), "none") or "")
    return index if index is not None and -1 <= index < steps else None
