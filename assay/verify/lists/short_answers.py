"""Several questions answered in a few words, a line each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.text.compare import same

_NUMBERED = re.compile(r"^\s*\(?\d{1,3}[.):]\s+")


def answer_lines(response: str) -> list[str]:
    """Return the answers of a response: its lines behind any thought that are not blank, without their numbers."""
    lines = response.rpartition("</think>")[2].splitlines()
    return [_NUMBERED.sub("", line).strip() for line in lines if line.strip()]


@part("verify", "short_answers")
@dataclass(frozen=True, slots=True)
class ShortAnswers:
    """The share of questions whose line is the answer (:func:`~assay.verify.text.compare.same`); right if all are.

    ``task.reference`` is the list of answers, texts or numbers, in the order of the questions. Line k is the answer to
    question k; what is missing is wrong, further lines are not read. ``parts``: ``answer k``, from 1.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = task.reference
        if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not wanted:
            return Verdict.abstain(f"task {task.id}: reference is no list of answers", "tests")
        given = answer_lines(response)
        right = [k < len(given) and same(given[k], str(answer)) for k, answer in enumerate(wanted)]
        parts: dict[str, float | None] = {f"answer {k}": float(ok) for k, ok in enumerate(right, 1)}
        why = "" if all(right) else f"answer {right.index(False) + 1} of {len(right)} is wrong"
        return Verdict(sum(right) / len(right), all(right), parts, why)
