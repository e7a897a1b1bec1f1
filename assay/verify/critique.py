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

LINE_TEMPLATE = r"""Question:
{question}

Proposed solution:
{response}

Check the solution step by step, and say how it could be improved. End with the line
Correctness of the final answer: Correct
or
Correctness of the final answer: Wrong"""

_LINE = re.compile(r"^\W*Correctness of the final answer\W*:\W*(Correct|Wrong)\b", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"\s*(?:\\text\{)?\s*(true|false|yes|no)\b", re.IGNORECASE)


def said(reply: str) -> bool | None:
    """Return what a reply says of a solution, right or not; ``None`` where it does not say.

    The last line "Correctness of the final answer: Correct" (or Wrong) says it; without one, the last box.
    """
    if lines := _LINE.findall(reply):
        return str(lines[-1]).lower() == "correct"
    found = _WORD.match(extract(reply, ("boxed",), "none") or "")
    return None if found is None else found[1].lower() in ("true", "yes")


@part("verify", "critique")
@dataclass(frozen=True, slots=True)
class CritiqueVerdict:
    r"""Right iff the verdict of a critique is what the label says: that of its line or of its last box, :func:`said`.

    ``task.reference`` is the label, ``True`` or ``False``, of the solution that the critique is of. A critique without
    either is wrong; ``parts["readable"]`` tells it from one that errs. Abstains on a task without a label.

    Source: Mirror-Critique (arXiv 2509.23152); the line is that of Critique-RL (arXiv 2510.24320).
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
