"""Pairs of a good and a poor response to a task, scored: what a model that is to score responses learns from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.engines.writing import WRITING
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Want, Work, child
from assay.types import Task

NUMBER = re.compile(r"(?<![\w.])-?\d*\.?\d+")


@dataclass(frozen=True, slots=True)
class Contrasted:
    """Has a writer respond to each task in a good and in a poor manner, and a judge score both; two tasks come of it.

    A pair is kept where the good response scores ``high`` or more and the poor one ``low`` or less. Each of its two
    tasks asks for the score of one response, in the words that the scorer will be asked in; the score is its reference
    and its solution, and on record as its response, so that ``assay train sft`` learns from the file.

    Args:
        good, poor: what the writer is asked, with ``{question}``.
        rate: what the judge is asked, with ``{question}`` and ``{response}``; the last number of its reply counts.
        shown: what the scorer is asked, with ``{problem}`` and ``{solution}``.
        low, high: see above.
        least, most: scores that there are; another number is none.
        by, judge: roles of who writes and who scores.
        sampling: of the responses.
        rating: of the scores, greedy.

    Raises:
        UsageError: thresholds out of order or of range, or a template without what it has to show.
    """

    good: str
    poor: str
    rate: str
    shown: str
    low: float = 0.4
    high: float = 0.7
    least: float = 0.1
    most: float = 1.0
    by: str = "writer"
    judge: str = "judge"
    sampling: Sampling = WRITING
    rating: Sampling = Sampling(1024, 0.0)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not self.least <= self.low < self.high <= self.most:
            raise UsageError(
                f"step contrasted: needs {self.least:g} <= low {self.low:g} < high {self.high:g} <= {self.most:g}"
            )
        wanted = {"good": ["question"], "poor": ["question"], "rate": ["response"], "shown": ["solution"]}
        for name, places in wanted.items():
            if missing := [place for place in places if f"{{{place}}}" not in getattr(self, name)]:
                raise UsageError(f"step contrasted: the template {name!r} lacks {{{missing[0]}}}")

    def __call__(self, task: Task, here: Here) -> Work:
        asked = [filled(manner, question=task.question) for manner in (self.good, self.poor)]
        written = yield [Want(prompt, 1, self.sampling, self.by) for prompt in asked]
        responses = [reply for [reply] in written]
        if any(reply.stop not in ("eos", "stop") or not reply.text.strip() for reply in responses):
            return Dropped("a response is empty or cut off")
        texts = [reply.text.strip() for reply in responses]
        if texts[0] == texts[1]:
            return Dropped("both responses are the same")
        prompts = [filled(self.rate, question=task.question, response=text) for text in texts]
        replies = yield [Want(prompt, 1, self.rating, self.judge) for prompt in prompts]
        scores = [self.read(reply.text) for [reply] in replies]
        if scores[0] is None or scores[1] is None:
            return Dropped("a score cannot be read")
        if scores[0] < self.high:
            return Dropped("the good response scores too low")
        if scores[1] > self.low:
            return Dropped("the poor response scores too high")
        return [
            self._task(task, k, text, f"{score:g}") for k, (text, score) in enumerate(zip(texts, scores, strict=True))
        ]

    def read(self, reply: str) -> float | None:
        """Return the last number of a reply; ``None`` where there is none, or it is no score."""
        found = NUMBER.findall(reply)
        value = float(found[-1]) if found else None
        return value if value is not None and self.least <= value <= self.most else None

    def _task(self, task: Task, number: int, response: str, score: str) -> Task:
        return child(
            task,
            "contrasted",
            number,
            prompt=filled(self.shown, problem=task.question, solution=response),
            reference=score,
            solution=score,
            kind="number",
            hints=(),
            meta={"responses": [score], "manner": ("good", "poor")[number], "response": response},
        )
