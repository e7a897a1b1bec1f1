r"""A comparison of two answers that ends in a block of its own: which one is better."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict

BEGIN, END = "[Verdict]", "[End of Verdict]"
FORM = f"{BEGIN}\n\\boxed{{1 or 2}}\n{END}"
_TAIL = re.compile(
    rf"{re.escape(BEGIN)}[ \t]*\n\s*\\boxed\{{\s*([12])\s*\}}[ \t]*\n\s*{re.escape(END)}\s*\Z", re.IGNORECASE
)


def pair_verdict(reply: str) -> int | None:
    """Return which answer, 1 or 2, a reply says is better; ``None`` unless it ends with one block that says one."""
    found = _TAIL.search(reply)
    return int(found[1]) if found and reply.count(BEGIN) == 1 else None


@part("verify", "pair_verdict")
@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Right iff a comparison ends with the verdict that ``task.reference``, ``1`` or ``2``, says.

    The verdict is 1 or 2 in a box on a line of its own, between ``[Verdict]`` and ``[End of Verdict]``, behind which
    there is nothing. A reply without it is wrong; part ``readable`` tells it from one that errs. Abstains on a task
    without a label.

    Source: Branch-and-Rethink (arXiv 2510.23596) and its authors' code; the names of the block are a choice.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        label = str(task.reference).strip()
        if label not in ("1", "2"):
            return Verdict.abstain(f"task {task.id} has the label {task.reference!r}, not 1 or 2")
        found = pair_verdict(response)
        if found is None:
            return Verdict(0.0, False, {"readable": 0.0}, f"does not end with {BEGIN}, a box with 1 or 2, {END}")
        right = str(found) == label
        return Verdict(
            float(right), right, {"readable": 1.0}, "" if right else f"said {found}, the better one is {label}"
        )
