"""What a teacher is shown that the student was not: a sibling's solution, what was said of the attempt, the attempt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assay.batch import Batch
from assay.errors import UsageError
from assay.rollout.templates import check_template, through_template
from assay.signals.likelihood import text_of_reference
from assay.types import Prompt

THINKING = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
TEMPLATE = "{question}\n\n{shown}Now solve the question itself, correctly."
SOLUTION = "A correct solution:\n\n{solution}\n\n"
FEEDBACK = "An earlier attempt failed, and this was said of it:\n\n{feedback}\n\n"


@dataclass(frozen=True, slots=True)
class Hindsight:
    """For each response the question with a sibling's correct solution, and with what its verifier said of it.

    The solution is the text of the group's first response with a score of at least ``threshold``, without its
    thinking, but never the response itself. What is said of a response that is a solution is no feedback. A response
    with neither solution nor feedback is shown nothing.

    Args:
        template: of the whole, with ``{shown}`` and, where the question is to stand, ``{question}``; of a chat the last
            user message is put through it.
        solution: of a solution, with ``{solution}``; empty for no solutions.
        feedback: of feedback, with ``{feedback}``; empty for none.
        when: show feedback ``alone``, only where there is no solution, or ``also`` beside one.
        threshold: a score from which a response is a solution.
        own: whether a response may be shown as a solution to itself.

    Raises:
        UsageError: a template without its field, or neither solutions nor feedback.

    Source: SDPO (arXiv 2601.20802), templates in words of our own.
    """

    template: str = TEMPLATE
    solution: str = SOLUTION
    feedback: str = FEEDBACK
    when: Literal["alone", "also"] = "alone"
    threshold: float = 0.5
    own: bool = False

    def __post_init__(self) -> None:
        if not (self.solution or self.feedback):
            raise UsageError("hindsight: it shows neither solutions nor feedback; give a template for one of them")
        for name, template in (("shown", self.template), ("solution", self.solution), ("feedback", self.feedback)):
            if template:
                check_template(template, name, f"hindsight: {name}")

    def prompts(self, batch: Batch) -> list[Prompt | None]:
        """Return what each response is to be read under, ``None`` where there is nothing to show."""
        solutions = self.solutions(batch)
        out: list[Prompt | None] = []
        for i, (task, verdict) in enumerate(zip(batch.tasks, batch.verdicts, strict=True)):
            shown = ""
            which = solutions[i]
            if which is not None:
                text = THINKING.sub("", batch.episodes[which].text).strip()
                shown = self.solution.format(solution=text)
            failed = verdict.passed is not None and verdict.score < self.threshold
            if self.feedback and failed and verdict.feedback and (which is None or self.when == "also"):
                shown += self.feedback.format(feedback=verdict.feedback)
            out.append(through_template(task.prompt, self.template, shown=shown) if shown else None)
        return out

    def solutions(self, batch: Batch) -> list[int | None]:
        """Return the index of the response that is shown to each as a solution."""
        if not self.solution:
            return [None] * len(batch)
        groups: dict[int, list[int]] = {}
        for i, (group, verdict) in enumerate(zip(batch.prompt_group.tolist(), batch.verdicts, strict=True)):
            if verdict.passed is not None and verdict.score >= self.threshold:
                groups.setdefault(group, []).append(i)
        return [
            next((j for j in groups.get(group, []) if self.own or j != i), None)
            for i, group in enumerate(batch.prompt_group.tolist())
        ]


@dataclass(frozen=True, slots=True)
class Answered:
    """For each response the question with its reference answer; nothing where the task has none that is a text or a
    number: tests, or the parts of a rubric, are no answer to read.

    Args:
        template: with ``{answer}``, see :func:`assay.rollout.templates.through_template`.

    Raises:
        UsageError: a template without it.
    """

    template: str

    def __post_init__(self) -> None:
        check_template(self.template, "answer", "a second view")

    def prompts(self, batch: Batch) -> list[Prompt | None]:
        """Return what each response is to be read under."""
        return [
            through_template(task.prompt, self.template, answer=answer) if (answer := text_of_reference(task)) else None
            for task in batch.tasks
        ]


RIGHT = "Let me rephrase the above solution."
WRONG = "Wait, this response is not correct, let me start over."


@dataclass(frozen=True, slots=True)
class Revision:
    """For each response the question, the whole response, and a phrase that says whether it was right.

    Response and phrase stand where the policy has begun to answer, each with an empty line after it: it goes on from
    there. With a template they stand in the prompt instead.

    Args:
        template: with ``{question}``, ``{attempt}`` and ``{phrase}``, or ``None``.
        right, wrong: the phrases.

    A response that could not be judged is shown nothing.

    Raises:
        UsageError: a template without its fields, or equal phrases.

    Source: SD-Zero (arXiv 2604.12002), section 3.
    """

    template: str | None = None
    right: str = RIGHT
    wrong: str = WRONG

    def __post_init__(self) -> None:
        try:
            found = "\0\1" if self.template is None else self.template.format(question="", attempt="\0", phrase="\1")
        except (KeyError, IndexError, ValueError):
            found = ""
        if "\0" not in found or "\1" not in found:
            raise UsageError(
                "revision: the template has to contain {attempt} and {phrase}, may contain {question}, and writes "
                "other braces twice"
            )
        if self.right == self.wrong:
            raise UsageError("revision: the phrases for right and wrong attempts are equal; they tell the two apart")

    def prompts(self, batch: Batch) -> list[Prompt | None]:
        """Return what each response is to be read under."""
        return [
            None if verdict.passed is None else self.prompt(task.prompt, episode.text, verdict.passed)
            for task, episode, verdict in zip(batch.tasks, batch.episodes, batch.verdicts, strict=True)
        ]

    def begun(self, batch: Batch) -> list[str]:
        """Return what a response to that prompt has begun with."""
        return [
            self.beginning(episode.text, bool(verdict.passed))
            for episode, verdict in zip(batch.episodes, batch.verdicts, strict=True)
        ]

    def phrase(self, right: bool) -> str:
        return self.right if right else self.wrong

    def prompt(self, question: Prompt, attempt: str, right: bool) -> Prompt:
        """Return the prompt under which an attempt is revised."""
        if self.template is None:
            return question
        return through_template(question, self.template, attempt=attempt, phrase=self.phrase(right))

    def beginning(self, attempt: str, right: bool) -> str:
        """Return what a revision of an attempt goes on from; nothing where that stands in the prompt."""
        return "" if self.template is not None else f"{attempt}\n\n{self.phrase(right)}\n\n"
