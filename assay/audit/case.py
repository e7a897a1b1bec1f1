"""One labelled case: a question, its reference, a response, and whether the response's final answer is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.types import Task


@dataclass(frozen=True, slots=True)
class Case:
    """A response whose label is known by construction, from exact objects, without any verifier.

    Attributes:
        id: ``family/seed/number/label``; enough to make the case again.
        question: what was asked, complete enough to settle which spellings of the answer are acceptable.
        reference: the gold answer as text.
        response: the whole response.
        label: whether the final answer of ``response`` is right.
        family: name of the generator.
        kind: the spelling (where right) or the near miss (where wrong).
        answer: the final answer as it stands in ``response``, without what marks it; empty if it has none.
        verifier: the kind of task it is: ``math`` or another kind of answer.
        unmarked: the settings of a verifier's option ``unmarked`` under which the label holds: a right value without
            a mark is right for ``last`` only, and a right value left unmarked in the working wrong for ``refuse`` only.
        counted: whether it counts in error rates; if not, it is reported as a number of its own.
        meta: ``gold`` and ``said``, the exact values of reference and answer (``None``: it states none), written so
            that SymPy can read the mathematical ones; ``form`` of the answer; ``shell`` around it.
    """

    id: str
    question: str
    reference: str
    response: str
    label: bool
    family: str
    kind: str
    answer: str = ""
    verifier: str = "math"
    unmarked: tuple[str, ...] = ("refuse", "last")
    counted: bool = True
    meta: Mapping[str, Any] = field(default_factory=dict)

    def task(self, kind: str | None = None) -> Task:
        """Return the task that a verifier is asked about, of ``kind`` (by default :attr:`verifier`)."""
        return Task(self.id, self.question, self.reference, kind or self.verifier, meta={"family": self.family})
