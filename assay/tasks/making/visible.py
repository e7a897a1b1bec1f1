"""Questions about pictures that are answered by who sees them, and not by who does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.media import MARK
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work
from assay.types import Message, Task, pictures
from assay.verify.choice.questions import questions_of
from assay.verify.choice.verifier import Choice

FORM = "\nReply with the letter of one option, and nothing else."
CHOICE = Choice()


@dataclass(frozen=True, slots=True)
class Visible:
    """Keeps of a task's questions (:func:`~assay.verify.choice.questions.questions_of`) those that need its pictures.

    Each is asked with the task's pictures and without, once for every rotation of its options, so that a model that
    always says the same letter is right once. Kept are those right in a share of at least ``seen`` with and of at most
    ``blind`` without; the others leak their answer, or are wrong or unclear. Both shares are noted beside the question.
    A task without a question that is kept is dropped.

    Args:
        seen, blind: in [0, 1].
        by: role of the model that is asked.
        sampling: of the replies, greedy unless given.

    Raises:
        UsageError: a share out of range; of a pipeline that begins with it, a task without pictures or questions.

    Source: the curation of CapRL (arXiv 2509.22647).
    """

    seen: float = 0.75
    blind: float = 0.25
    by: str = "solver"
    sampling: Sampling = Sampling(16, 0.0)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not (0 <= self.seen <= 1 and 0 <= self.blind <= 1):
            raise UsageError(f"filter visible: seen {self.seen:g} and blind {self.blind:g} must be in [0, 1]")

    def check(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            questions_of(task)
            if not pictures(task.prompt):
                raise UsageError(f"filter visible: task {task.id} has no picture in its prompt")

    def __call__(self, task: Task, here: Here) -> Work:
        shown = pictures(task.prompt)
        questions = questions_of(task)
        turns = [[question.rotated(k) for k in range(len(question.options))] for question in questions]
        wants = []
        for turn in (turn for each in turns for turn in each):
            text = turn.question + FORM
            sighted: Message = {"role": "user", "content": f"{MARK}\n" * len(shown) + text, "images": shown}
            bare: Message = {"role": "user", "content": text}
            wants += [Want((asked,), 1, self.sampling, self.by) for asked in (sighted, bare)]
        replies = iter((yield wants))
        kept = []
        for question, each in zip(questions, turns, strict=True):
            rights = [(_right(turn, next(replies)), _right(turn, next(replies))) for turn in each]
            seen, blind = (sum(side) / len(each) for side in zip(*rights, strict=True))
            if seen >= self.seen and blind <= self.blind:
                kept.append(question.row | {"seen": seen, "blind": blind})
        if not kept:
            return Dropped("no question needs the picture and is answered with it")
        return replace(task, reference={**task.reference, "questions": kept})


def _right(turn: Task, replies: Sequence[Reply]) -> bool:
    return bool(CHOICE(turn, replies[0].text).passed)
