"""Steps that leave out what is there already: in a held-out set, or among the tasks before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import UsageError
from assay.tasks.making.task_file import read_tasks
from assay.tasks.making.work import Dropped, Here
from assay.types import Task
from assay.verify.grounding.ngrams import NGramIndex


def plain(text: str) -> str:
    """Return a text as it is compared: letters and digits in lower case, with single spaces between words."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


class Known:
    """Texts that are known, and how much of another stands in them.

    Args:
        texts: what is known.
        n: characters of a verbatim match, of texts as they are compared.
    """

    def __init__(self, texts: Iterable[str], n: int = 50):
        whole = [plain(text) for text in texts]
        self.whole, self.index = frozenset(whole), NGramIndex(whole, n)

    def has(self, text: str, share: float) -> bool:
        """Whether a text is known as a whole, or at least this share of its characters is in verbatim matches."""
        text = plain(text)
        return text in self.whole or (len(text) >= self.index.n and self.index.coverage(text) >= share)


@dataclass(frozen=True, slots=True)
class Decontaminate:
    """Drops a task whose question stands in a held-out set: as a whole, or for a large part in verbatim matches.

    Case, punctuation and spacing make no difference; other numbers or other words do, and are not found.

    Args:
        held_out: files of tasks.
        n: characters of a match.
        share: of a question's characters within matches from which it is dropped.

    Raises:
        UsageError: a file that is no task file, or a share outside (0, 1].
    """

    held_out: tuple[Path, ...]
    n: int = 50
    share: float = 0.5
    _known: Known = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.n < 1:
            raise UsageError(f"filter decontaminate: share {self.share} must be in (0, 1] and n {self.n} at least 1")
        asked = [task.question for path in self.held_out for task in read_tasks(path)]
        object.__setattr__(self, "_known", Known(asked, self.n))

    def __call__(self, task: Task, here: Here) -> Task | Dropped:
        return Dropped("stands in a held-out set") if self._known.has(task.question, self.share) else task


@dataclass(frozen=True, slots=True)
class Distinct:
    """Drops a task whose question, as it is compared, is that of an earlier one."""

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        first: dict[str, Task] = {}
        for task in tasks:
            first.setdefault(plain(task.question) or task.question, task)
        return list(first.values()), {"asked before": len(tasks) - len(first)}
