"""What has to be seen in pictures to answer a question about them, in short questions with answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import beside, filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.media import MARK
from assay.tasks.making.work import Dropped, Here, Want, Work, noted
from assay.types import Task, pictures
from assay.verify.lists.short_answers import answer_lines
from assay.verify.text.compare import same

ASK = """Here is a question about what is shown, with its answer:

Question: {question}
Answer: {answer}

What has to be seen to find that answer? Write {least} to {most} short questions about what can be seen, without any \
reasoning, that somebody who does see it can answer in a word or a number, and nobody else. Do not ask the question \
itself.

Reply with a JSON list and nothing else, such as
[{"question": "How many cats are there?", "answer": "2"}]"""


def read_perceptions(reply: str, most: int, words: int, question: str) -> list[dict[str, str]]:
    """Return the questions of a reply that can be used, at most so many: different ones, answered in few words.

    Args:
        reply: with a JSON list, whatever stands around it.
        most: questions.
        words: of an answer, at most.
        question: that may not be asked itself.
    """
    start, end = reply.find("["), reply.rfind("]")
    try:
        said = json.loads(reply[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        said = None
    found: dict[str, dict[str, str]] = {}
    for row in said if isinstance(said, list) else ():
        asked, answer = (_text(row.get(k)) for k in ("question", "answer")) if isinstance(row, Mapping) else ("", "")
        plain = _plain(asked)
        short = bool(answer) and len(answer.split()) <= words and "\n" not in asked + answer
        if asked and short and plain != _plain(question):
            found.setdefault(plain, {"question": asked, "answer": answer})
    return list(found.values())[:most]


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _plain(question: str) -> str:
    return " ".join(question.replace(MARK, " ").casefold().split())


@dataclass(frozen=True, slots=True)
class PerceptionChecklists:
    """Gives a task with pictures ``meta["checklist"]``: questions about what is seen, as a model that sees writes them.

    It is shown pictures, question and answer. A task for which it writes fewer than ``least`` that can be used
    (:func:`read_perceptions`) is left out. With ``checked`` another look decides: who is asked in that role answers
    each question from the pictures alone, in one prompt, and those remain that he answers alike.

    Args:
        least, most: questions.
        words: of an answer, at most.
        checked: role of who answers them, such as ``judge``; ``None`` for nobody.
        template: of the request, with ``{question}``, ``{answer}``, ``{least}`` and ``{most}``.
        by: role of who writes.
        sampling: of the reply.

    Raises:
        UsageError: numbers that are out of range; of tasks, that none has pictures.

    Source: PEARL (arXiv 2511.18437), whose checklists a large model writes offline.
    """

    least: int = 2
    most: int = 5
    words: int = 4
    checked: str | None = None
    template: str = ASK
    by: str = "writer"
    sampling: Sampling = Sampling(1024, 0.6)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.words < 1:
            raise UsageError(
                f"step perception: 1 <= least {self.least} <= most {self.most}, and words {self.words} at least 1"
            )

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where nothing is shown."""
        if not any(pictures(task.prompt) for task in tasks):
            raise UsageError(f"a checklist of what is seen is of tasks with pictures, and task {tasks[0].id} has none")

    def __call__(self, task: Task, here: Here) -> Work:
        if not pictures(task.prompt) or not isinstance(task.reference, str | int | float):
            return Dropped("it has no pictures, or no answer that is a text or a number")
        question = task.question.replace(MARK, " ").strip()
        sizes = {"least": str(self.least), "most": str(self.most)}
        asked = filled(self.template, question=question, answer=str(task.reference), **sizes)
        [[reply]] = yield [Want(beside(task, asked), 1, self.sampling, self.by)]
        rows = read_perceptions(reply.text, self.most, self.words, task.question)
        if len(rows) >= self.least and self.checked is not None:
            numbered = "\n".join(f"{k}. {row['question']}" for k, row in enumerate(rows, 1))
            again = f"Answer in a few words, one line for each, without reasons:\n{numbered}"
            [[seen]] = yield [Want(beside(task, again), 1, Sampling(256, 0.0), self.checked)]
            given = answer_lines(seen.text)
            rows = [row for row, said in zip(rows, given, strict=False) if same(said, row["answer"])]
        if len(rows) < self.least:
            return Dropped(f"fewer than {self.least} questions about what is seen")
        return noted(task, checklist=rows)
