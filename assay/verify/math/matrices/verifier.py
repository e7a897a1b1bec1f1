"""The final answer is the reference, as a formula of matrices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.spans import Span
from assay.verify.base import Verifier, answer_place
from assay.verify.guard import judge
from assay.verify.hybrid import extracted
from assay.verify.kind import check_ready
from assay.verify.make import make_verifier
from assay.verify.math.matrices.equal import same
from assay.verify.math.matrices.read import BOLD, tokens
from assay.verify.text.text import references

_MATRIX = re.compile("|".join(map(re.escape, sorted(BOLD))))
_APPLIED = re.compile(r"(?<![A-Za-z\\])[A-Za-z]\s*\(")


@part("verify", "matrix_math")
@dataclass(frozen=True, slots=True)
class MatrixMath:
    r"""Right iff the final answer equals the reference, where products of bold letters do not commute.

    A rule, ``math``, finds the answer and judges it first. Where bold letters stand in the answer and a reference, both
    are read as formulas in which ``\mathbf{H}`` is a matrix and ``\mathbf{h}`` a vector, and compared by their values
    for matrices drawn at random (:func:`~assay.verify.math.matrices.equal.same`): an answer that is equal is right, and
    one that is not is wrong, whatever the rule has said. Where they are equal for square matrices alone, or cannot be
    read (expectations, blocks, roots of matrices), what the rule calls right is not known, and it abstains; what it
    calls wrong is wrong.

    ``math`` reads a bold letter as any other, so that to it HW is WH, and (HW)^H is not W^H H^H.

    Args:
        rule: a verifier: a name, a table or a callable.

    Raises:
        UsageError: when made, for a verifier that cannot be made.
    """

    rule: Any = "math"
    _rule: Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rule", make_verifier(self.rule))

    def __call__(self, task: Task, response: str) -> Verdict:
        said = judge(self._rule, task, response, "rule")
        answer, wanted = extracted(self._rule, task, response), references(task.reference)
        bold = [_MATRIX.search(text) is not None for text in (answer or "", *wanted)]
        if not answer or not any(bold):
            return said
        if not (bold[0] and any(bold[1:])):
            return (
                said
                if said.passed is False
                else Verdict.abstain("a formula of matrices that cannot be read: one has no bold letters")
            )
        found = [True if tokens(text) == tokens(answer) else same(text, answer) for text in wanted]
        if True in found and (said.passed or not _APPLIED.search(answer)):
            return Verdict.right()
        if None not in found or said.passed is False:
            return Verdict.wrong(f"equal: {answer[:80]!r} is another formula of matrices") if said.passed else said
        return Verdict.abstain("a formula of matrices that cannot be read")

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: where the rule reads it."""
        return answer_place(self._rule, task, response)

    def ready(self) -> None:
        """Raise UsageError where this machine lacks what the rule needs."""
        check_ready(self._rule)
