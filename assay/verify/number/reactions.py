"""The forces that hold a beam up, as multiples of a load, each with its support or in any order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.text.exact import shorten

_FORCE = re.compile(
    r"(?:(?P<name>[A-Za-z][A-Za-z0-9_{}]{0,12})\s{0,3}[=:]\s{0,3})?"
    r"(?P<sign>[-+]?)\s{0,3}(?:\\[dt]?frac\{(?P<top>[0-9]{1,30})\}\{(?P<bottom>[0-9]{1,30})\}|"
    r"(?P<number>[0-9]{1,30}(?:\.[0-9]{1,30})?)(?:\s{0,2}/\s{0,2}(?P<under>[0-9]{1,30}))?)?"
    r"\s{0,3}(?:\*|\\cdot|\\times|\\,)?\s{0,3}P(?![A-Za-z0-9_])(?:\s{0,2}/\s{0,2}(?P<below>[0-9]{1,30}))?"
)
_OVER = re.compile(r"\\[dt]?frac\{\s{0,2}([0-9.]{0,60})\s{0,2}P\s{0,2}\}\{\s{0,2}([0-9]{1,30})\s{0,2}\}")
_HELD = re.compile(
    r"(?:\\left)?\(\s{0,2}([0-9.]{1,60}(?:\s{0,2}/\s{0,2}[0-9]{1,30})?|\\[dt]?frac\{[0-9]{1,30}\}\{[0-9]{1,30}\})\s{0,2}"
    r"(?:\\right)?\)"
)
_THOUGHT = re.compile(r"\A\s*<think>.+?</think>.*\\boxed\{", re.DOTALL)
_NOTHING = re.compile(r"([=:]\s{0,3})0(?:\.0{1,9})?(?=\s{0,3}(?:[,;]|\Z))")
LONGEST = 2000


@part("verify", "reactions")
@dataclass(frozen=True, slots=True)
class Reactions(Marked):
    """Right iff the box holds every reaction as a multiple of P, within a tolerance.

    ``task.reference`` is ``{"reactions": {"R_A": "3/5", "R_B": "2/5"}}``. Forces may come in any order, with names
    (``R_A = 0.6P``) or without. ``parts``: ``accuracy``, 1 if all are right; ``format``, 1 if the response is
    ``<think>...</think>`` and after it one box.

    Source: the rewards of BeamPERL (arXiv 2603.04124), which look at no names and allow more forces than are asked for.

    Args:
        tolerance: absolute, of each multiple.
    """

    tolerance: float = 1e-4
    rules: ClassVar[tuple[Rule, ...]] = ("boxed",)
    fallback: ClassVar[Fallback] = "none"

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            wanted = {_plain(str(k)): Fraction(str(v)) for k, v in dict(task.reference["reactions"]).items()}
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'reactions': {{name: multiple}}}}", "tests")
        formed = response.count("\\boxed{") == 1 and _THOUGHT.match(response) is not None
        box = extract(response, self.rules, self.fallback)
        complaint = "there is no box" if box is None else self._complaint(box[:LONGEST], wanted)
        right = not complaint
        return Verdict(float(right), right, {"accuracy": float(right), "format": float(formed)}, complaint)

    def _complaint(self, box: str, wanted: Mapping[str, Fraction]) -> str:
        found = [(m["name"], _multiple(m)) for m in _FORCE.finditer(_plainly(box))]
        if len(found) != len(wanted) or any(value is None for _, value in found):
            return f"{shorten(box)!r} does not name {len(wanted)} multiples of P"
        names = [_plain(name or "") for name, _ in found]
        if "" in names:
            if any(names):
                return "some forces have a name, and some have none"
            # In order of size each is nearest to its own.
            names = sorted(wanted, key=wanted.__getitem__)
            found = sorted(found, key=lambda force: force[1] or Fraction(0))
        elif set(names) != set(wanted):
            return f"the forces are {', '.join(wanted)}"
        for name, (_, value) in zip(names, found, strict=True):
            expected = wanted[name]
            if value is None or abs(value - expected) > Fraction(str(self.tolerance)):
                return f"{name} is {shorten(str(value))} P, not {expected} P"
        return ""


def _plain(name: str) -> str:
    return re.sub(r"[_{}]", "", name).lower()


def _plainly(box: str) -> str:
    r"""Return a box with ``\frac{3P}{5}`` as 3P/5, ``(3/5)P`` as 3/5P, and a force that is 0 as 0P."""
    plain = _HELD.sub(r"\1", _OVER.sub(r"\1P/\2", box.replace("\N{MINUS SIGN}", "-")))
    return _NOTHING.sub(r"\g<1>0P", plain)


def _multiple(found: re.Match[str]) -> Fraction | None:
    below = int(found["under"] or 1) * int(found["below"] or 1) * int(found["bottom"] or 1)
    if not below:
        return None
    value = Fraction(found["top"] or found["number"] or 1) / below
    return -value if found["sign"] == "-" else value


def reactions(supports: tuple[Any, Any], loads: list[tuple[Any, Any]]) -> tuple[Fraction, Fraction]:
    """Return the forces at two supports x1 < x2 that hold loads (x, P) in balance.

        R2 = sum P (x - x1) / (x2 - x1)        R1 = sum P - R2

    Raises:
        ValueError: the supports are not in order.
    """
    first, second = (Fraction(x) for x in supports)
    if first >= second:
        raise ValueError(f"supports at {first} and {second} are not in order")
    right = sum((Fraction(p) * (Fraction(x) - first) for x, p in loads), Fraction(0)) / (second - first)
    return sum((Fraction(p) for _, p in loads), Fraction(0)) - right, right
