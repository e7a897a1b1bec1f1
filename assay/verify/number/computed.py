"""Answers of a computation compared without a model: as mathematics, with units, rounded, with constants put in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.hybrid import extracted
from assay.verify.make import make_verifier
from assay.verify.math.expressions.evaluate import evaluate, floats
from assay.verify.math.expressions.nodes import variables
from assay.verify.math.expressions.values import Scalar
from assay.verify.math.read.reading import read as read_math
from assay.verify.math.verifier import Math
from assay.verify.number.quantity import Quantity, convert, read
from assay.verify.text.text import references

CONSTANTS: Mapping[str, Sequence[float]] = {
    "g": (9.8, 9.81, 10.0),
    "c": (299792458.0, 3e8),
    "h": (6.62607015e-34,),
    "R": (8.314462618, 8.314),
}
"""Values that constants of a symbolic reference are given in textbooks."""


@part("verify", "computed")
@dataclass(frozen=True, slots=True)
class Computed:
    """Right iff one of these says so, in turn: equal as mathematics, equal quantities, equal with constants put in.

    Numbers are equal that are so rounded to ``places`` decimals, in the reference's unit, or within ``relative``; where
    that would leave nothing of the reference, within a hundredth of it. A unit that only one of both has is passed over
    if ``lenient``. What none of them can read goes to ``fallback``.

    Args:
        places: decimals.
        relative: 0 for none.
        lenient: see above; without it a missing or an extra unit is wrong.
        constants: values of names, any of which may have been used.
        fallback: a verifier, a name, a table or a callable; abstains where there is none.

    Raises:
        UsageError: a number out of range, or a fallback that cannot be made.

    Source: the judging policy of CoSineVerifier (arXiv 2512.01224).
    """

    places: int = 2
    relative: float = 0.0
    lenient: bool = True
    constants: Mapping[str, Sequence[float]] = field(default_factory=lambda: CONSTANTS)
    fallback: Any = None
    _math: Math = field(init=False, repr=False, compare=False)
    _fallback: Verifier | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.places <= 12 or not 0 <= self.relative < 1:
            raise UsageError("verifier 'computed': places is from 0 to 12, relative in [0, 1)")
        object.__setattr__(self, "_math", Math())
        object.__setattr__(self, "_fallback", None if self.fallback is None else make_verifier(self.fallback))

    def __call__(self, task: Task, response: str) -> Verdict:
        found = judge(self._math, task, response, "math")
        given = [r for r in references(task.reference) if r.strip()]
        if not given:
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        answer = extracted(self._math, task, response, "line")
        said = [self._compared(r, answer) for r in given]
        if True in said:
            return Verdict.right()
        # A quantity in words of its own is for the comparison of quantities, not of expressions.
        if False in said:
            return Verdict.wrong(f"{answer[:40]!r} is not {given[0][:40]!r}")
        if found.passed is not None or self._fallback is None:
            return found
        return judge(self._fallback, task, response, "fallback")

    def _compared(self, reference: str, answer: str) -> bool | None:
        gold, given = read(reference), read(answer)
        if gold is not None and given is not None and bool(gold.readings) != bool(given.readings):
            return self.lenient and self._close(given.value, gold.value)
        if self._same_math(reference, answer):
            return True
        if gold is not None and given is not None:
            return self._quantities(gold, given)
        return None if given is None else self._with_constants(reference, given)

    def _same_math(self, reference: str, answer: str) -> bool:
        return self._math(Task("", "", reference, "math"), rf"\boxed{{{answer}}}").passed is True

    def _quantities(self, gold: Quantity, given: Quantity) -> bool:
        if not gold.readings:
            return self._close(given.value, gold.value)
        pairs = itertools.product(gold.readings, given.readings)
        return any(
            self._close(convert(given.value, theirs, ours), gold.value)
            for ours, theirs in pairs
            if ours.dimension == theirs.dimension
        )

    def _with_constants(self, reference: str, given: Quantity) -> bool | None:
        known = None
        for value in read_math(reference):
            names = sorted(variables(value.node)) if isinstance(value, Scalar) else []
            if not isinstance(value, Scalar) or not names or not set(names) <= self.constants.keys():
                continue
            known = False
            for chosen in itertools.product(*(self.constants[name] for name in names)):
                point = dict(zip(names, map(complex, chosen), strict=True))
                try:
                    z = complex(evaluate(value.node, point, floats(False)))
                except (ArithmeticError, ValueError, KeyError):
                    continue
                if math.isfinite(z.real) and abs(z.imag) < 1e-9 and self._close(given.value, Fraction(z.real)):
                    return True
        return known

    def _close(self, a: Fraction, b: Fraction) -> bool:
        if abs(a - b) <= Fraction(self.relative) * abs(b):
            return True
        rounded = round(b, self.places)
        return round(a, self.places) == rounded if rounded else abs(a - b) <= abs(b) / 100
