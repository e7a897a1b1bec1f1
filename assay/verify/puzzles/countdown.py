"""An expression over given numbers that reaches a target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.puzzles.expression import ExpressionError, evaluate
from assay.verify.text.compare import parse_number
from assay.verify.text.exact import shorten

_SYMBOLS = str.maketrans(
    {
        "\N{MULTIPLICATION SIGN}": "*",
        "\N{MIDDLE DOT}": "*",
        "\N{DIVISION SIGN}": "/",
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "[": "(",
        "]": ")",
        "$": " ",
    }
)
_LATEX = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\left", ""), ("\\right", ""))


@part("verify", "countdown")
@dataclass(frozen=True, slots=True)
class Countdown(Marked):
    """Right iff the response's expression equals the target and uses the given numbers.

    ``task.reference`` is ``{"numbers": [...], "target": t}``. The expression is read from the last ``<answer>``, else
    from the last line; of ``expression = value`` the left side counts, of ``name = expression`` the right side.
    ``parts`` are ``format``, ``numbers`` and ``value``, the last two ``None`` where the format is wrong.

    Args:
        use_all: each given number exactly once; otherwise at most once.
        rules: markers of the final answer, see :func:`~assay.verify.answer.extract.extract`.
    """

    use_all: bool = True
    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    fallback: ClassVar[Fallback] = "line"

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            given = Counter(int(n) for n in task.reference["numbers"])
            target = Fraction(task.reference["target"])
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'numbers': [...], 'target': t}}")
        text = expression_of(extract(response, self.rules, self.fallback) or "")
        try:
            value, used = evaluate(text)
        except ExpressionError as error:
            parts = {"format": 0.0, "numbers": None, "value": None}
            return Verdict(0.0, False, parts, f"{shorten(text)!r} is not an arithmetic expression: {error}")
        complaint = self._misuse(given, Counter(used))
        reached = value == target
        parts = {"format": 1.0, "numbers": float(not complaint), "value": float(reached)}
        if not reached:
            complaint += f"{'; ' if complaint else ''}equals {shorten(_show(value))}, not {_show(target)}"
        return Verdict(float(not complaint), not complaint, parts, complaint)

    def _misuse(self, given: Counter[int], used: Counter[int]) -> str:
        # int -> text is quadratic in Python, so numbers are only shown at a bounded size.
        for number, times in used.items():
            if number not in given:
                return f"uses {shorten(_show(Fraction(number)))}, which is not given"
            if times > given[number]:
                return f"uses {number} {times} times, given {given[number]}"
        if self.use_all and (unused := list((given - used).elements())):
            return f"does not use {', '.join(map(str, unused))}"
        return ""


def expression_of(text: str) -> str:
    """Return the side of an equation that is the expression, with typographic operators as ASCII."""
    for latex, plain in _LATEX:
        text = text.replace(latex, plain)
    text = text.translate(_SYMBOLS).strip().rstrip(".")
    left, equals, rest = text.partition("=")
    if not equals:
        return text.strip()
    last = rest.rpartition("=")[2]
    return (left if parse_number(last) is not None or not last.strip() else last).strip()


def _show(value: Fraction) -> str:
    return str(value) if value.numerator.bit_length() + value.denominator.bit_length() < 400 else "a huge number"
