"""Questions with options about pictures, as a model that sees writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.engines.asking import beside, filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Want, Work
from assay.types import Task, pictures

ASK = """Write {count} hard multiple-choice questions about what is shown, each with four options of which one is \
right. It must take a look at the picture to answer them, and nothing else.

Reply with a JSON list and nothing else, such as
[{"question": "What colour is the kayak?", "options": ["blue", "red", "black", "white"], "answer": "red"}]"""


def read_choices(reply: str, most: int) -> list[dict[str, Any]]:
    """Return the questions of a reply that can be used, at most so many: different ones, of two to 25 different options
    one of which is the answer.

    Args:
        reply: with a JSON list, whatever stands around it.
        most: questions.
    """
    start, end = reply.find("["), reply.rfind("]")
    try:
        said = json.loads(reply[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        said = None
    found: dict[str, dict[str, Any]] = {}
    for row in said if isinstance(said, list) else ():
        if not isinstance(row, Mapping):
            continue
        text, answer, given = row.get("question"), str(row.get("answer")), row.get("options")
        options = [str(one).strip() for one in given] if isinstance(given, list) else []
        fit = 2 <= len(options) == len(set(options)) <= 25 and all(options) and answer.strip() in options
        if isinstance(text, str) and text.strip() and fit:
            asked = text.strip()
            found.setdefault(asked.casefold(), {"question": asked, "options": options, "answer": answer.strip()})
    return list(found.values())[:most]


@dataclass(frozen=True, slots=True)
class WrittenChoices:
    """Gives a task with pictures ``reference["questions"]``, which a model that sees them writes; a task that has
    questions keeps them, and one for which none can be used is left out.

    Args:
        count: questions that are asked for.
        template: of the request, with ``{count}``.
        by: role of who writes.
        sampling: of the reply.

    Raises:
        UsageError: ``count`` below 1; of tasks, one without pictures.

    Source: CapRL (arXiv 2509.22647) and its authors' code: five questions of each picture, at temperature 0.1.
    """

    count: int = 5
    template: str = ASK
    by: str = "writer"
    sampling: Sampling = Sampling(2048, 0.1)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"step questions: count {self.count} must be at least 1")

    def check(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if not pictures(task.prompt):
                raise UsageError(f"step questions: task {task.id} has no picture in its prompt")

    def __call__(self, task: Task, here: Here) -> Work:
        known = task.reference if isinstance(task.reference, Mapping) else {}
        if known.get("questions"):
            return task
        [[reply]] = yield [Want(beside(task, filled(self.template, count=str(self.count))), 1, self.sampling, self.by)]
        rows = read_choices(reply.text, self.count)
        return (
            replace(task, reference={**known, "questions": rows}) if rows else Dropped("no question that can be used")
        )
