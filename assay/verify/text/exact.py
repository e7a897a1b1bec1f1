"""The final answer equals the reference, as text or as a number."""

from __future__ import annotations

from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.text.compare import normalise, same


@part("verify", "exact")
@dataclass(frozen=True, slots=True)
class Exact(Marked):
    """Right iff the extracted answer is the reference, see :func:`~assay.verify.text.compare.same`.

    ``task.reference`` is the answer, or a list of answers any of which is accepted.

    Args:
        rules: markers of a final answer, see :func:`~assay.verify.answer.extract.extract`.
        fallback: what to read where there is no marker: the last ``line``, the ``whole`` response, or ``none`` of it.
        numeric: compare as exact rationals where both sides are numbers (``0.5`` equals ``1/2``).
        ignore_case: compare text without regard to case.
    """

    rules: tuple[Rule, ...] = RULES
    fallback: Fallback = "line"
    numeric: bool = True
    ignore_case: bool = True

    def __call__(self, task: Task, response: str) -> Verdict:
        accepted = task.reference if isinstance(task.reference, list | tuple) else [task.reference]
        accepted = [str(a) for a in accepted if a is not None]
        if not any(normalise(a) for a in accepted):
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        if any(same(answer, a, self.numeric, self.ignore_case) for a in accepted):
            return Verdict.right()
        return Verdict.wrong(f"answered {shorten(answer)!r}, expected {shorten(accepted[0])!r}")


def shorten(text: str, width: int = 60) -> str:
    """Return ``text`` cut to ``width`` characters for a feedback line, with a mark for what cannot be printed."""
    text = text if len(text) <= width else text[: width - 3] + "..."
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
