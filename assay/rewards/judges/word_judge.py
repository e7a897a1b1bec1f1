"""A language model as verifier that says of a response, with the reference beside it, Correct or Incorrect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.rewards.judges.reference_judge import Unread
from assay.rewards.text.embedding import texts_of
from assay.tasks.judging.ternary import SHOWN
from assay.tasks.judging.words import said_word
from assay.types import Episode, Task, Verdict
from assay.verify.answer.extract import extract

View = Literal["complete", "boxed"]
"""What a judge sees of a response: all of it, or its last box."""
TEMPLATE = """Question:
{question}

Reference answer:
{reference}

Response:
{response}

Is the final answer of the response the reference answer? Units and other writings of the same are accepted. Only the \
final answer counts, not how it was found. End with [Correct] or [Incorrect]."""


def viewed(response: str, view: View) -> str:
    """Return what a judge sees of a response; nothing of one without a box, where boxes are shown."""
    if view == "complete":
        return response
    answer = extract(response, ("boxed",), "none")
    return rf"\boxed{{{answer}}}" if answer else ""


@dataclass(frozen=True, slots=True)
class WordJudge:
    """A verifier that asks a model whether a response ends in the reference.

    What it says is read by :func:`~assay.tasks.judging.words.said_word`.

    It abstains if the judge failed, if the task has no reference, and from a reply that says neither unless ``unread``
    is ``wrong``.

    Args:
        judge: an engine, or the specification of one.
        template: with ``{question}``, ``{reference}`` and ``{response}``.
        unread: what a reply without a verdict comes to, ``wrong`` or ``abstain``.
        max_tokens: of the reply.
        temperature, top_p: of the reply; greedy by default.
        view: what is shown of the response.

    Raises:
        UsageError: no engine, a template that does not show all three.
    """

    judge: Any
    template: str = TEMPLATE
    unread: Unread = "abstain"
    max_tokens: int = 4096
    temperature: float = 0.0
    top_p: float = 1.0
    view: View = "complete"

    def __post_init__(self) -> None:
        object.__setattr__(self, "judge", judge_of(self.judge, "a judge of responses"))
        if any(f"{{{name}}}" not in self.template for name in SHOWN):
            raise UsageError("a judge of responses: the template must show {question}, {reference} and {response}")

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many responses by one call of the judge."""
        pairs = list(pairs)
        rows = [i for i, (task, _) in enumerate(pairs) if texts_of(task)]
        sampling = Sampling(self.max_tokens, self.temperature, self.top_p)
        replies = dict(zip(rows, ask(self.judge, [self.question(*pairs[i]) for i in rows], sampling), strict=True))
        return [
            self._verdict(replies[i])
            if i in replies
            else Verdict.abstain(f"task {task.id} has no reference to compare with")
            for i, (task, _) in enumerate(pairs)
        ]

    def question(self, task: Task, response: str) -> str:
        """Return what the judge is asked."""
        shown = {"question": task.question, "reference": " / ".join(texts_of(task))}
        return filled(self.template, **shown, response=viewed(response, self.view))

    def read(self, reply: str) -> Verdict | None:
        """Return what a reply says, ``None`` where it has no verdict."""
        right = said_word(reply)
        return None if right is None else Verdict(float(right), right)

    def _verdict(self, reply: Episode) -> Verdict:
        if reply.stop == "error":
            return Verdict.abstain("the judge failed")
        found = self.read(reply.text)
        if found is not None:
            return found
        said = f"the judge said {reply.text.strip()[:40]!r}, which is no verdict"
        return Verdict.abstain(said) if self.unread == "abstain" else Verdict.wrong(said)
