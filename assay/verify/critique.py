"""A critique that comes to the right verdict."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import extract

TEMPLATE = r"""Question:
{question}

Proposed solution:
{response}

Check the solution step by step. Then write \boxed{{True}} if its final answer is right, and \boxed{{False}} if not."""

_WORD = re.compile(r"\s*(?:\\text\{)?\s*(true|false|yes|no)\b", re.IGNORECASE)


def said(reply: str) -> bool | None:
    """Return what the last box of a reply says, true or false; ``None`` where there is no box or something else."""
    found = _WORD.match(extract(reply, ("boxed",), "none") or "")
    return None if found is None else found[1].lower() in ("true", "yes")


@part("verify", "critique")
@dataclass(frozen=True, slots=True)
class CritiqueVerdict:
    r"""Right iff the last box of a critique says what the label says: 1[boxed verdict == label].

    ``task.reference`` is the label, ``True`` or ``False``, of the solution that the critique is of. A critique without
    ``\boxed{True}`` or ``\boxed{False}`` is wrong; ``parts["readable"]`` tells it from one that errs. Abstains on a
    task without a label.

    Source: Mirror-Critique (arXiv 2509.23152).
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        label = {"true": True, "false": False}.get(str(task.reference).strip().lower())
        if label is None:
            return Verdict.abstain(f"task {task.id} has the label {task.reference!r}, not True or False")
        found = said(response)
        if found is None:
            return Verdict(0.0, False, {"readable": 0.0}, r"no \boxed{True} or \boxed{False}")
        feedback = "" if found is label else f"said {found}, the solution is {'right' if label else 'wrong'}"
        return Verdict(float(found is label), found is label, {"readable": 1.0}, feedback)
