"""A teacher who knows the answer says what is wrong with an attempt, and is kept from giving the answer away."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from assay.engines.asking import filled, judge_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.from_file import from_file, is_reference
from assay.types import Episode, Task, Verdict

TEMPLATE = """A student works at a task, and you know its answer. Help without giving the answer away.

Task:
{question}

Answer, for you alone:
{answer}

What was said so far:
{history}

The last attempt:
{attempt}

What the checker found:
{found}

In two sentences at most, say what is wrong and where to look. Do not state the answer or a part of it."""
LEAK = """Does this hint state the answer of the task, so that nothing is left to be done?

Task:
{question}

Answer:
{answer}

Hint:
{hint}

Reply yes or no."""

Asked = Callable[[Task, Sequence[tuple[str, str]], str, Verdict], str]
"""From a task, the attempts and replies before, the last attempt and its verdict to what a teacher says."""


def leaks(text: str, task: Task) -> bool:
    """Whether a text has the task's answer in it: its reference, a string or a number, as words of their own."""
    answer = answer_of(task)
    return bool(answer) and re.search(rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)", text, re.IGNORECASE) is not None


def answer_of(task: Task) -> str:
    """Return the reference if it is text or a number, empty if it is something else, such as tests."""
    known = isinstance(task.reference, str | int | float) and not isinstance(task.reference, bool)
    return str(task.reference).strip() if known else ""


class Teacher:
    """What is said of an attempt that is wrong, by a model that sees the answer.

    What :func:`leaks` the answer, or is found to by ``guard``, is said anew, and left out after ``tries``.

    Args:
        speaker: an engine, or the specification of one; a function as :data:`Asked`, or one in a file.
        guard: an engine that is asked as well whether a hint states the answer; ``None`` for none.
        template: with ``{question}``, ``{answer}``, ``{history}``, ``{attempt}``, and ``{found}`` by the verifier.
        tries: at least 1.
        sampling: of what is said.

    Raises:
        UsageError: no engine or function, ``tries`` below 1, or a template without the attempt.
    """

    def __init__(
        self,
        speaker: Any,
        guard: Any = None,
        template: str = TEMPLATE,
        tries: int = 3,
        sampling: Sampling | None = None,
    ):
        if tries < 1 or "{attempt}" not in template:
            raise UsageError(f"a teacher: tries {tries} must be at least 1, and the template must show the {{attempt}}")
        if isinstance(speaker, str) and is_reference(speaker):
            speaker = from_file(speaker, "teacher")
        self.said: Asked | None = speaker if callable(speaker) else None
        self.engine = None if self.said is not None else judge_of(speaker, "a teacher")
        self.guard = None if guard is None else judge_of(guard, "a teacher's guard")
        self.template, self.tries, self.sampling = template, tries, sampling or Sampling(128, 0.7)

    def say(self, task: Task, before: Sequence[tuple[str, str]], attempt: str, verdict: Verdict, seed: int = 0) -> str:
        """Return what is said of the last attempt; empty where every try gave the answer away.

        Args:
            before: earlier attempts, and what was said of each.
            seed: of the draws.

        Raises:
            RuntimeError: a model failed.
        """
        for k in range(self.tries):
            text = self._once(task, before, attempt, verdict, seed + k)
            if text and not leaks(text, task) and not self._guarded(text, task):
                return text
        return ""

    def _once(self, task: Task, before: Sequence[tuple[str, str]], attempt: str, verdict: Verdict, seed: int) -> str:
        if self.said is not None:
            return self.said(task, before, attempt, verdict).strip()
        prompt = filled(
            self.template,
            question=task.question,
            answer=answer_of(task) or "known to the checker",
            history="\n".join(f"Attempt: {a}\nYou: {b}" for a, b in before) or "nothing",
            attempt=attempt,
            found=verdict.feedback or "it is not right",
        )
        return told(self.engine, prompt, self.sampling, seed)

    def _guarded(self, text: str, task: Task) -> bool:
        if self.guard is None:
            return False
        prompt = filled(LEAK, question=task.question, answer=answer_of(task), hint=text)
        return told(self.guard, prompt, Sampling(8, 0.0), 0).lower().startswith("yes")


def told(engine: Any, prompt: str, sampling: Sampling, seed: int) -> str:
    """Return an engine's one reply.

    Raises:
        RuntimeError: it failed.
    """
    reply: Episode
    [[reply]] = engine.generate([Request(prompt, 1, sampling, seed)])
    if reply.stop == "error":
        raise RuntimeError(str(reply.meta.get("error", "the teacher failed")))
    return reply.text.strip()
