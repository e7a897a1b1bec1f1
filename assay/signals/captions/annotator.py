"""Who says what a caption is worth: an engine, asked in a thread beside the run, and how its replies are read."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from assay.engines.asking import ask, filled
from assay.engines.base import Engine, Sampling
from assay.signals.captions.models import Question

T = TypeVar("T")
HELPFUL = """An agent acts in a world. You are shown one thing that it has met there.
{goal}
Say whether what is shown is a help on the way to the goal. It does not matter how much it tells, but how much nearer
the agent is by it. Say helpful only of what is clearly so; what is neutral is unhelpful.

What it met:
{caption}

Reply in this form:
<analysis>one sentence</analysis>
<label>helpful or unhelpful</label>"""
BETTER = """An agent acts in a world. You are shown two things that it has met there.
{goal}
Say which of them is more of a help on the way to the goal.

The first:
{first}

The second:
{second}

Reply in this form:
<analysis>one sentence</analysis>
<best>1, 2 or none</best>"""


class Stack:
    """What waits to be asked: the newest goes first, what is asked for again is as good as new, the oldest is dropped.

    Args:
        capacity: that wait, at most.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.waiting: dict[Question, None] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, questions: Iterable[Question]) -> int:
        """Put questions on top, the last one uppermost; return how many were dropped."""
        for question in questions:
            self.waiting.pop(question, None)
            self.waiting[question] = None
        return self._drop()

    def push_under(self, questions: Iterable[Question]) -> int:
        """Put questions that do not wait yet under all others; return how many were dropped."""
        self.waiting = {question: None for question in questions if question not in self.waiting} | self.waiting
        return self._drop()

    def _drop(self) -> int:
        over = list(self.waiting)[: max(0, len(self.waiting) - self.capacity)]
        for question in over:
            del self.waiting[question]
        return len(over)

    def take(self, count: int) -> list[Question]:
        """Take the newest off, in the order they came in."""
        taken = list(self.waiting)[-count:]
        for question in taken:
            del self.waiting[question]
        return taken


def beside(work: Callable[[], T]) -> Future[T]:
    """Have ``work`` done in a thread of its own, which does not keep the process alive; errors go to who waits."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="captions", daemon=True).start()
    return future


def annotated(
    engine: Engine, questions: Sequence[Question], goal: str, sampling: Sampling
) -> dict[Question, float | None]:
    """Return a label for each question, ``None`` where the engine failed.

    Of a caption: 1 for helpful, 0 for anything else. Of two: 1 if the second is better, 0 if the first is, and 0.5.
    """
    prompts = [
        filled(HELPFUL, goal=goal, caption=question[0])
        if len(question) == 1
        else filled(BETTER, goal=goal, first=question[0], second=question[1])
        for question in questions
    ]
    read = {1: helpful, 2: better}
    replies = ask(engine, prompts, sampling)
    return {
        question: None if reply.stop == "error" else read[len(question)](reply.text)
        for question, reply in zip(questions, replies, strict=True)
    }


def helpful(reply: str) -> float:
    """Return 1 if the last label of a reply is helpful, else 0."""
    return float(_last("label", reply) == "helpful")


def better(reply: str) -> float:
    """Return how likely the second is the better one: 0, 1, and 0.5 unless the reply says so."""
    return {"1": 0.0, "2": 1.0}.get(_last("best", reply), 0.5)


def _last(tag: str, reply: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", reply, re.DOTALL | re.IGNORECASE)
    return found[-1].strip().strip(".").lower() if found else ""
