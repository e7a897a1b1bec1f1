"""Spellings of a value that the math verifier should take for it, and others that it should not: one table a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.registry import build
from assay.types import Task

Row = tuple[str, str, Sequence[str], Sequence[str]]
"""A question, its reference, answers that are right, answers that are wrong."""


def right(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    return [(question, reference, answer) for question, reference, answers, _ in rows for answer in answers]


def wrong(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    return [(question, reference, answer) for question, reference, _, answers in rows for answer in answers]


def accepted(question: str, reference: str, answer: str) -> bool:
    """Whether an answer is accepted, whatever marks it."""
    if "\\" in answer and "$" not in answer:
        responses = [f"The answer is ${answer}$.", f"So \\boxed{{{answer}}}"]
    else:
        responses = [f"We compute it carefully.\n\nAnswer: {answer}"]
    math = build("verify", "math")
    verdicts = {math(Task("t", question, reference, "math"), response).passed for response in responses}
    assert len(verdicts) == 1, f"the marker decides about {answer!r}"
    return verdicts == {True}
