"""Tasks that teach a judge whether an answer is right, and if not, whether its knowledge or its making is to blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from assay.engines.asking import filled
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.judging.ternary import Letter
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task
from assay.verify.text.mentions import mentions
from assay.verify.text.overlap import f1
from assay.verify.text.text import normalised

_OPTIONS = """(A) The passages do not help to answer the question.
(B) The passages help, and the answer is not right by them.
(C) The answer is right."""
_SHOWN = """Passages:
{knowledge}

Question: {question}
Answer: {answer}"""
INSTRUCTIONS = (
    f"{_SHOWN}\n\nWhich of these holds?\n{_OPTIONS}\nReply with one letter.\n",
    f"Someone answered a question with the passages below.\n\n{_SHOWN}\n\nHow did it go?\n{_OPTIONS}\nLetter:",
    f"{_OPTIONS}\n\nChoose one of the above for the following.\n\n{_SHOWN}\n\nChoice:",
    f"Check the answer against the passages.\n\n{_SHOWN}\n\n{_OPTIONS}\n\nIt is",
    f"{_SHOWN}\n\nIs the retrieval at fault (A), the answer (B), or neither (C)?\n{_OPTIONS}\n",
)
"""Five ways to ask; a verifier sums its probabilities over them."""
By = Literal["mentions", "f1", "exact"]


def knowledge_label(retrieved: float, right: float, threshold: float = 0.5) -> Letter:
    """Return C if the answer's score is above ``threshold``, else B if anything was retrieved of use, else A.

    An answer that is right without the knowledge is C all the same.

    Args:
        retrieved: share of what is asked for that the knowledge holds.
        right: score of the answer.
        threshold: see above.
    """
    return "C" if right > threshold else "B" if retrieved > 0 else "A"


def retrieved_share(knowledge: str, entities: Sequence[str]) -> float:
    """Return the share of entities that stand in the knowledge; 0 of none."""
    return sum(mentions(knowledge, e) for e in entities) / len(entities) if entities else 0.0


def answer_score(answer: str, accepted: Sequence[str], by: By = "mentions") -> float:
    """Return how right an answer is by the accepted ones, aliases of each other: the best of them.

    Args:
        answer, accepted: texts.
        by: whether it mentions one, the F1 of their words, or whether it is one after SQuAD's normalisation.
    """
    score = {
        "mentions": lambda a: float(mentions(answer, a)),
        "f1": lambda a: f1(a, answer),
        "exact": lambda a: float(normalised(a) == normalised(answer)),
    }[by]
    return max(map(score, accepted), default=0.0)


@part("tasks", "knowledge_judging")
class KnowledgeJudging:
    """Tasks (question, passages, answer) -> A, B or C, labelled by :func:`knowledge_label`.

    Each has its letter as worked solution, so that a warm-up on them is the language-model loss on the letter; the
    instruction is one of several by lot.

    Args:
        path: a file of rows ``{"question", "knowledge", "output", "answers"}`` and perhaps ``entities``: passages, a
            text or a list; what was answered; accepted answers; and what the knowledge should hold, the answers unless
            given.
        by, threshold: see :func:`answer_score` and :func:`knowledge_label`.
        instructions: each with ``{question}``, ``{knowledge}`` and ``{answer}``.
        seed: of the lots.

    Raises:
        UsageError: no such file, no rows, a row that lacks something, or an instruction that does.
    """

    def __init__(
        self,
        path: Path,
        by: By = "mentions",
        threshold: float = 0.5,
        instructions: Sequence[str] = INSTRUCTIONS,
        seed: int = 0,
    ):
        check_seed("tasks 'knowledge_judging'", seed)
        check_instructions(instructions, "tasks 'knowledge_judging'")
        rng = np.random.default_rng(seed)
        self.tasks = [
            _task(where, row, by, threshold, instructions[int(rng.integers(len(instructions)))])
            for where, row in read_rows(Path(path))
        ]
        if not self.tasks:
            raise UsageError(f"tasks 'knowledge_judging': {path} has no rows")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def check_instructions(instructions: Sequence[str], where: str) -> None:
    """Raise UsageError unless there are instructions, each of which shows question, knowledge and answer."""
    shown = ("question", "knowledge", "answer")
    if not instructions or any(f"{{{name}}}" not in text for text in instructions for name in shown):
        raise UsageError(f"{where}: give instructions, each with {{question}}, {{knowledge}} and {{answer}}")


def _task(where: str, row: Any, by: By, threshold: float, instruction: str) -> Task:
    lacks = [n for n in ("question", "knowledge", "output", "answers") if not isinstance(row, Mapping) or n not in row]
    if lacks:
        raise UsageError(f"{where} lacks {', '.join(lacks)}")
    knowledge = row["knowledge"] if isinstance(row["knowledge"], str) else "\n".join(map(str, row["knowledge"]))
    accepted = [row["answers"]] if isinstance(row["answers"], str) else [str(a) for a in row["answers"]]
    found = retrieved_share(knowledge, [str(e) for e in row.get("entities") or accepted])
    label = knowledge_label(found, answer_score(str(row["output"]), accepted, by), threshold)
    prompt = filled(instruction, question=str(row["question"]), knowledge=knowledge, answer=str(row["output"]))
    return Task(str(row.get("id", where)), prompt, label, "exact", label)
