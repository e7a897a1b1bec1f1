"""The last number of the response is the reference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Rule, extract
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span
from assay.verify.text.compare import last_number, last_number_place, parse_number
from assay.verify.text.exact import shorten


@part("verify", "number")
@dataclass(frozen=True, slots=True)
class Number:
    """Right iff the last number in the answer equals the reference exactly, as GSM8K is scored.

    What is said about the number is not read: "not 5" passes for 5. To train a model, take ``math``.

    ``task.reference`` is a number, or a text whose last number is meant (``"... #### 1,234"``).

    Args:
        rules: markers that narrow where to look, see :func:`~assay.verify.answer.extract.extract`; without any of them
            the whole response is read.
        marker: a text that has to come before the number; a response without it is wrong.
    """

    rules: tuple[Rule, ...] = ("answer_tag", "boxed", "hashes")
    marker: str | None = None

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = self._value(task.reference)
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference {shorten(str(task.reference))!r} holds no number")
        if self.marker is not None:
            _, found, response = response.rpartition(self.marker)
            if not found:
                return Verdict.wrong(f"no {self.marker!r} before the answer")
        number = last_number(extract(response, self.rules, "whole") or "")
        if number is None:
            return Verdict.wrong("no number in the answer")
        value = parse_number(number)
        if value is None:
            return Verdict.wrong(f"{shorten(number)!r} is too long or not a number")
        if value == wanted:
            return Verdict.right()
        return Verdict.wrong(f"answered {shorten(number)}, expected {shorten(str(task.reference))}")

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: the last number, opened by the marker."""
        begin = start = 0
        if self.marker is not None:
            begin = response.rfind(self.marker)
            start = begin + len(self.marker)
            if begin < 0:
                return None
        rest = response[start:]
        mark = marked(rest, self.rules, "none")
        inner = last_number_place(rest if mark is None else rest[mark.start : mark.end])
        if inner is None:
            return None
        offset = start if mark is None else start + mark.start
        first, end = inner[0] + offset, inner[1] + offset
        moved = (
            Span(first, first, end, end) if mark is None else Span(mark.begin + start, first, end, mark.over + start)
        )
        return moved if self.marker is None else moved._replace(begin=begin)

    def _value(self, reference: Any) -> Fraction | None:
        if reference is None:
            return None
        number = last_number(extract(str(reference), self.rules, "whole") or "")
        return None if number is None else parse_number(number)
