"""Thoughts with the scores that a large model gives them, for a smaller one to learn to give."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.engines.asking import beside, escaped, filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.media import MARK
from assay.tasks.making.work import Dropped, Here, Want, Work, whole_replies
from assay.types import Prompt, Task

TEMPLATE = """You judge how good reasoning is, not whether its final answer is right. Consider whether each step \
follows from those before it, whether what it states is true and soundly applied, whether there are unfounded \
assumptions, whether it keeps to one language, and whether it repeats itself.

Question:
"{question}"

Reasoning:
"{thought}"

Reply with one number, 0, 0.1, 0.2, ..., 1: 0 for reasoning that is flawed throughout, 1 for what is entirely sound."""
_NUMBER = re.compile(r"(?<![\w.])(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)(?![\w.]*\d)")
SCORE = "thought_score"
"""Key of a task's meta."""


def thought_of(text: str) -> str:
    """Return what stands before ``</think>``, without its tag; all of a response that has none."""
    thought, end, _ = text.rpartition("</think>")
    return (thought if end else text).replace("<think>", "").strip()


def read_score(reply: str) -> float | None:
    """Return the last number in [0, 1] of a reply; ``None`` where there is none."""
    found = _NUMBER.findall(reply)
    return float(found[-1]) if found else None


def thought_prompt(task: Task, response: str, template: str = TEMPLATE) -> Prompt:
    """Return what is asked about the thought of a response, below the pictures of its question.

    Args:
        template: with ``{question}`` and ``{thought}``, which are shown as JSON has texts.
    """
    question = task.question.replace(MARK, "").strip()
    return beside(task, filled(template, question=escaped(question), thought=escaped(thought_of(response))))


@dataclass(frozen=True, slots=True)
class ScoredThoughts:
    """Has tasks answered, and makes of each response the task of scoring its thought, whose solution is the score that
    a judge gives it, to one place.

    Responses that were cut off, and those that the judge gives no number, are left out.

    Args:
        n: responses to a task, by the role ``writer``.
        judge: role of who scores, greedily.
        sampling: of responses.

    Raises:
        UsageError: ``n`` below 1.

    Source: SophiaVL-R1 (arXiv 2505.17018), whose responses are those of the policy at every stage of its training.
    """

    n: int = 4
    judge: str = "judge"
    sampling: Sampling = Sampling(2048, 1.0)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"step thoughts: n {self.n} must be at least 1")

    def __call__(self, task: Task, here: Here) -> Work:
        [replies] = yield [Want(task.prompt, self.n, self.sampling)]
        prompts = [thought_prompt(task, text) for text in whole_replies(replies)]
        said = yield [Want(prompt, 1, Sampling(16, 0.0), self.judge) for prompt in prompts]
        made = []
        for k, (prompt, [reply]) in enumerate(zip(prompts, said, strict=True)):
            if (score := read_score(reply.text)) is not None:
                told = f"{score:.1f}"
                facts = {"source": "thoughts", SCORE: score}
                made.append(
                    Task(f"{task.id}/thought/{k}", prompt, told, "exact", solution=told, meta=facts, parent=task.id)
                )
        return made or Dropped("no thought that has a score")


@dataclass(frozen=True, slots=True)
class EvenScores:
    """Keeps at most ``most`` tasks of each tenth of the scores, [0, .1), ..., [.9, 1], drawn at random, in their order.

    Args:
        most: at least 1; the paper has 5,000 to 15,000 of each.

    Raises:
        UsageError: ``most`` below 1.

    Source: SophiaVL-R1 (arXiv 2505.17018), which samples its 156,703 of 470,331 thoughts so.
    """

    most: int = 15_000

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UsageError(f"step even: most {self.most} must be at least 1")

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        """Return the tasks that are kept."""
        tenths: dict[int, list[int]] = {}
        for i, task in enumerate(tasks):
            tenths.setdefault(min(int(round(task.meta[SCORE] * 10, 6)), 9), []).append(i)
        drawn = [here.rng.permutation(rows)[: self.most].tolist() for _, rows in sorted(tenths.items())]
        kept = sorted(i for rows in drawn for i in rows)
        return [tasks[i] for i in kept], {"there are enough of its score": len(tasks) - len(kept)}
