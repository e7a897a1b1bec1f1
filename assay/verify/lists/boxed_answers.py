"""Several problems answered in one response, a box for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import build, part
from assay.types import Task, Verdict
from assay.verify.answer.spans import boxes
from assay.verify.base import Verifier
from assay.verify.make import make_verifier

By = Literal["last", "all"]


def boxed_answers(response: str, n: int) -> list[str] | None:
    """Return the last ``n`` answers in boxes of a response, ``None`` where it has fewer.

    Where boxes under a last heading "### Final Answers" are n, these are they.
    """
    found = _boxed(response)
    return found[-n:] if len(found) >= n else None


def _boxed(text: str) -> list[str]:
    """The texts of the boxes that stand in no other."""
    out, over = [], 0
    for box in boxes(text):
        if box.begin >= over:
            out.append(text[box.start : box.end].strip())
            over = box.over
    return out


@part("verify", "boxed_answers")
@dataclass(frozen=True, slots=True)
class BoxedAnswers:
    r"""Judges a response that answers n problems, each in a box of its own, see :func:`boxed_answers`.

    R_last = 1 iff the answer to the last problem is right; R_all = 1 iff all are. ``task.reference`` is the list of
    answers, or a table with ``answers``, ``by``, ``last`` or ``all``, and ``of``, their kind. ``parts`` has
    ``problem k`` for each, from 1, and the feedback names the first that is wrong. A response with fewer boxes than
    problems is wrong.

    Source: R-HORIZON (arXiv 2510.08189) and its authors' code.

    Args:
        by: what counts, where the task does not say.
        of: the verifier of each answer: a name, a table or a callable. Where it is none, that of the kind which the
            task's table names, or ``math``.
        think: a response without a closing ``</think>`` is wrong, and what stands before it is not read.

    Raises:
        UsageError: another ``by``, or a verifier that cannot be made; when called, a kind that no verifier judges.
    """

    by: By = "last"
    of: Any = None
    think: bool = False
    _of: Verifier | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.by not in ("last", "all"):
            raise UsageError(f"verifier 'boxed_answers': by is {self.by!r}, give 'last' or 'all'")
        object.__setattr__(self, "_of", None if self.of is None else make_verifier(self.of))

    def __call__(self, task: Task, response: str) -> Verdict:
        answers, by, kind = _wanted(task.reference, self.by)
        if not answers:
            return Verdict.abstain(f"task {task.id} has the reference {task.reference!r}, no list of answers")
        if self.think:
            _, closed, response = response.rpartition("</think>")
            if not closed:
                return Verdict.wrong("format: there is no </think>")
        said = boxed_answers(response, len(answers))
        if said is None:
            return Verdict.wrong(f"fewer than {len(answers)} answers in boxes")
        judge = self._of or build("verify", kind)
        parts: dict[str, float | None] = {}
        for k, (answer, text) in enumerate(zip(answers, said, strict=True), 1):
            verdict = judge(replace(task, reference=answer, kind=kind), f"\\boxed{{{text}}}")
            parts[f"problem {k}"] = None if verdict.passed is None else float(verdict.passed)
        counted = [*parts.values()] if by == "all" else [parts[f"problem {len(answers)}"]]
        if 0.0 not in counted and None in counted:
            return Verdict(0.0, None, parts, "an answer cannot be judged")
        first = next((name for name, score in parts.items() if not score), "")
        passed = 0.0 not in counted
        return Verdict(float(passed), passed, parts, f"the first that is wrong is {first}" if first else "")


def _wanted(reference: Any, by: By) -> tuple[list[str], By, str]:
    kind = "math"
    if isinstance(reference, Mapping):
        by = "all" if reference.get("by", by) == "all" else "last"
        kind = str(reference.get("of") or kind)
        reference = reference.get("answers")
    if isinstance(reference, Sequence) and not isinstance(reference, str):
        return [str(answer) for answer in reference], by, kind
    return [], by, kind
