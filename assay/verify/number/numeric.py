"""A number with tolerance and units: physics, chemistry, finance, medicine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.number import units as unit_names
from assay.verify.number.quantity import Quantity, clean, convert, find_all, read
from assay.verify.number.units import ONE, Unit
from assay.verify.text.exact import shorten

Units = Literal["exact", "optional", "ignore"]
SLACK = Fraction(1, 10**9)
"""Relative error of the unit factors, which are floating-point numbers; it does not apply where the units are equal."""

_EQUALS = re.compile(r"[=≈]")
_OR = re.compile(r"\bor\b|\beither\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Wanted:
    quantity: Quantity
    rtol: Fraction
    atol: Fraction | None
    digits: int | Literal["reference"] | None


@part("verify", "numeric")
@dataclass(frozen=True, slots=True)
class Numeric(Marked):
    """Right iff the answer's quantity ``a``, in the reference's unit, is close to the reference ``b``.

    Close is any of ``|a - b| <= rtol |b|``, ``|a - b| <= atol`` and, with ``digits``, ``|a - b| <= q / 2`` where ``q``
    is the last digit kept: ``a`` and ``b`` agree when rounded to it.

    ``task.reference`` is a number; a text such as ``"9.81 m/s^2"``, ``"50 %"``, ``"2 c"``, ``"5.0 ± 0.1 kg"`` (the
    uncertainty is then ``atol``); or a mapping ``{"value", "unit", "rtol", "atol", "digits", "units"}``, all but
    ``value`` optional, that takes precedence over the options below. The last quantity counts; alternatives
    ("5 or 6") must all be right. ``parts`` are ``value`` and ``unit``. Abstains where the reference cannot be read.

    Args:
        rtol: relative tolerance, >= 0.
        atol: absolute tolerance in the reference's unit, >= 0; ``None`` for none.
        digits: significant digits, ``"reference"`` for as many as the reference shows, ``None`` not to round.
        units: ``exact``: the dimensions must be the same, and without a unit a number is dimensionless; ``optional``:
            where one side shows no unit it is taken to have the other's; ``ignore``: what follows a number is not read.
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.

    Raises:
        UsageError: when made, for a negative tolerance, or without pint unless ``units`` is ``ignore``.
    """

    rtol: float = 1e-9
    atol: float | None = None
    digits: int | Literal["reference"] | None = None
    units: Units = "exact"
    rules: tuple[Rule, ...] = RULES
    fallback: Fallback = "line"

    def __post_init__(self) -> None:
        if self.units != "ignore" and not unit_names.available():
            raise UsageError("verifier 'numeric' needs pint: pip install assay[units], or set units = \"ignore\"")
        if not (0 <= self.rtol < float("inf")) or (self.atol is not None and not 0 <= self.atol < float("inf")):
            raise UsageError(
                f"verifier 'numeric': rtol {self.rtol} and atol {self.atol} must be finite and not negative"
            )
        if isinstance(self.digits, int) and not 1 <= self.digits <= 100:
            raise UsageError(f"verifier 'numeric': digits {self.digits} must be from 1 to 100")

    def __call__(self, task: Task, response: str) -> Verdict:
        units = task.reference.get("units", self.units) if isinstance(task.reference, Mapping) else self.units
        if units != self.units and units in get_args(Units):
            return replace(self, units=units)(task, response)
        wanted = self._wanted(task.reference) if units == self.units else None
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference {shorten(str(task.reference))!r} is not a quantity")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        given = self._given(answer)
        if not given:
            return Verdict.wrong(f"no number in {shorten(answer)!r}")
        verdicts = [self._compare(quantity, wanted) for quantity in given]
        return min(verdicts, key=lambda v: v.score)

    def _wanted(self, reference: Any) -> _Wanted | None:
        """Return the reference as a quantity with its tolerances, ``None`` if it cannot be read."""
        options: Mapping[str, Any] = reference if isinstance(reference, Mapping) else {"value": reference}
        value = options.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction):
            return None
        try:
            # A float is read as it prints, so that it shows the digits it was written with.
            text = str(float(value)) if isinstance(value, Fraction) else str(value)
            if options.get("unit"):
                text = f"({text}) {options['unit']}"
            quantity = read(text, self.units != "ignore")
            if quantity is None and self.units == "ignore":
                quantity = next(iter(find_all(clean(text), False)), None)
            if quantity is None or (options.get("unit") and self.units != "ignore" and not quantity.readings):
                return None
            rtol = Fraction(options.get("rtol", self.rtol) or 0)
            atol = options.get("atol", self.atol)
            atol = quantity.uncertainty if atol is None else Fraction(atol)
            digits = options.get("digits", self.digits)
            if digits not in (None, "reference"):
                digits = int(digits)
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):
            return None
        if rtol < 0 or (atol or 0) < 0 or (isinstance(digits, int) and not 1 <= digits <= 100):
            return None
        return _Wanted(quantity, rtol, atol, digits)

    def _given(self, answer: str) -> list[Quantity]:
        """Return the last quantity of the answer, together with those joined to it by "or"."""
        whole = read(answer, self.units != "ignore")
        if whole is not None:
            return [whole]
        text = clean(answer)
        found = find_all(text, self.units != "ignore")
        given = found[-1:]
        for before, after in zip(reversed(found[:-1]), reversed(found), strict=False):
            between = text[before.end : after.start]
            if not _OR.search(between) or _EQUALS.search(between):
                break
            given.append(before)
        return given

    def _compare(self, given: Quantity, wanted: _Wanted) -> Verdict:
        reference = wanted.quantity
        pair = self._units(given, reference)
        if pair is None:
            problem = "has the wrong dimension" if given.readings else "has no unit"
            feedback = f"{shorten(given.text)} {problem}, expected {shorten(reference.text)}"
            return Verdict(0.0, False, {"value": None, "unit": 0.0}, feedback)
        unit, into = pair
        value = given.value if unit == into else convert(given.value, unit, into)
        distance = abs(value - reference.value)
        limits = [wanted.rtol * abs(reference.value), wanted.atol or Fraction(0)]
        if wanted.digits is not None:
            limits.append(_last_digit(reference, wanted.digits) / 2)
        slack = Fraction(0)
        if unit != into:
            slack = SLACK * max(abs(reference.value), abs(given.value * unit.scale / into.scale))
        close = distance <= max(limits) + slack
        feedback = "" if close else f"answered {shorten(given.text)}, expected {shorten(reference.text)}"
        return Verdict(float(close), close, {"value": float(close), "unit": 1.0}, feedback)

    def _units(self, given: Quantity, reference: Quantity) -> tuple[Unit, Unit] | None:
        """Return the units to compare in, ``None`` where the dimensions differ."""
        if self.units == "ignore" or (self.units == "optional" and not (given.readings and reference.readings)):
            return ONE, ONE
        for into in reference.readings or (ONE,):
            for unit in given.readings or (ONE,):
                if unit.dimension == into.dimension:
                    return unit, into
        return None


def _last_digit(reference: Quantity, digits: int | Literal["reference"]) -> Fraction:
    """Return the value of one unit in the last digit that is kept."""
    if digits == "reference" or reference.value == 0:
        return reference.resolution
    size = abs(reference.value)
    exponent = (
        len(str(size.numerator // size.denominator)) - 1 if size >= 1 else -len(str(size.denominator // size.numerator))
    )
    # The estimate from the digits of the quotient is exact but for powers of ten below one.
    while Fraction(10) ** exponent > size:
        exponent -= 1
    while Fraction(10) ** (exponent + 1) <= size:
        exponent += 1
    return Fraction(10) ** (exponent - digits + 1)
