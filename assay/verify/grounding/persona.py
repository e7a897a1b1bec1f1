"""Who is it, is it the same one, what is known of them; and whether that can be told at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.abstention import PHRASES, Where, abstains
from assay.verify.base import Verifier
from assay.verify.guard import judge
from assay.verify.make import make_verifier
from assay.verify.text.degenerate import degenerate

HELD = {"name": "text", "contains": True, "fallback": "whole"}
_BOXED = re.compile(r"\\boxed\{\s*(\d{1,3})\s*\}")
_TAIL = re.compile(r"\bAnswer\s*:\s*(\d{1,3})\b", re.IGNORECASE)
_BARE = re.compile(r"\b(\d{1,3})\b")
_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
TAIL, END = 300, 80


def said_index(response: str) -> int | None:
    """Return the number a response gives: its last box, else the last ``Answer: n`` of its last 300 characters, else
    the last number of its last 80; ``None`` where it gives none."""
    for found in (_BOXED.findall(response), _TAIL.findall(response[-TAIL:]), _BARE.findall(response[-END:])):
        if found:
            return int(found[-1])
    return None


@part("verify", "persona")
@dataclass(frozen=True, slots=True)
class Persona:
    """Judges a response to one of three questions, ``task.reference["type"]``, about people who may not be there:

    - ``localize``: which of ``contexts`` contexts shows them, ``answer`` from 0; as many as there are is "none";
    - ``verify``: are they the same, ``answer`` yes or no, by the last of these words in the response;
    - ``text_qa``: ``answer`` is what is known of them, or ``None`` where that cannot be told; a response abstains by
      what it says, see :func:`~assay.verify.answer.abstention.abstains`, and one that does not is judged by ``held``.

    "None", no, and an abstention say that nobody is there. The score is 1 iff the response is right. The
    feedback is what it is: ``true positive``, ``true negative``, ``false positive`` (somebody, where nobody is there),
    ``false negative``, ``wrong: another is there``, and where neither can be read ``unread: somebody is there`` or
    ``unread: nobody is there``. ``parts``: ``degenerate``, see :func:`~assay.verify.text.degenerate.degenerate`, which
    changes nothing in these.

    Args:
        held: verifier of answers in words against ``answer``; by default whether that stands in the response.
        where, phrases: of an abstention.

    Source: Omni-Persona (arXiv 2605.09996) and its authors' code, in which a model judges answers in words.
    """

    held: Any = field(default_factory=lambda: HELD)
    where: Where = "last"
    phrases: tuple[str, ...] = PHRASES
    _held: Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_held", make_verifier(self.held))

    def __call__(self, task: Task, response: str) -> Verdict:
        spec = task.reference if isinstance(task.reference, Mapping) else {}
        kind, answer = spec.get("type"), spec.get("answer")
        if kind == "localize" and isinstance(spec.get("contexts"), int) and isinstance(answer, int):
            nobody = spec["contexts"]
            if not 0 <= answer <= nobody:
                return Verdict.abstain(
                    f"task {task.id}: answer {answer} is none of {nobody} contexts, nor none", "tests"
                )
            index = said_index(response)
            said = None if index is None else index == nobody
            return _verdict(answer != nobody, said, index == answer, response)
        if kind == "verify" and str(answer).lower() in ("yes", "no"):
            words = _WORD.findall(response)
            denied = words[-1].lower() == "no" if words else None
            return _verdict(str(answer).lower() == "yes", denied, True, response)
        if kind == "text_qa" and "answer" in spec:
            return self._in_words(task, answer, response)
        return Verdict.abstain(
            f"task {task.id}: reference is none of a localize, verify or text_qa question with its answer", "tests"
        )

    def _in_words(self, task: Task, answer: Any, response: str) -> Verdict:
        if not response.strip():
            return _verdict(answer is not None, None, False, response)
        silent = abstains(response, self.where, self.phrases)
        if answer is None or silent:
            return _verdict(answer is not None, silent, False, response)
        held = judge(self._held, Task(task.id, task.prompt, answer), response)
        if held.passed is None:
            return held
        return _verdict(True, False, held.passed, response)


def _verdict(there: bool, nobody: bool | None, right: bool, response: str) -> Verdict:
    """Return the verdict on a response.

    Args:
        there: whether somebody is.
        nobody: whether the response says that nobody is; ``None`` where it says neither.
        right: whether it names the right one, if it names one.
    """
    parts: dict[str, float | None] = {"degenerate": float(degenerate(response))}
    if nobody is None:
        return Verdict(0.0, False, parts, f"unread: {'somebody' if there else 'nobody'} is there")
    if there and not nobody and not right:
        return Verdict(0.0, False, parts, "wrong: another is there")
    passed = there is not nobody
    name = f"{'true' if passed else 'false'} {'negative' if nobody else 'positive'}"
    return Verdict(float(passed), passed, parts, name)
