"""Steps that go by how responses to a task are marked by its rubric."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Sampling
from assay.engines.marking import Question
from assay.errors import UsageError
from assay.tasks.making.filters import SOLVING
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work, noted
from assay.types import Task
from assay.verify.rubric.aggregate import Marks, aggregate_of
from assay.verify.rubric.criteria import Rubric

MARKING = Sampling(4096, 0.0)


@dataclass(frozen=True, slots=True)
class Marking:
    """Who answers a task and who marks the answers.

    Args:
        n: responses.
        by, critic: roles of who answers and who marks.
        sampling: of the responses; marks are greedy.
        question: how marks are asked for.
    """

    n: int = 4
    by: str = "solver"
    critic: str = "critic"
    sampling: Sampling = SOLVING
    question: Question = field(default_factory=Question)

    def ask(self, task: Task) -> Generator[Sequence[Want], list[list[Reply]], tuple[Rubric, list[Marks]]]:
        """Return the task's rubric and the marks of each response."""
        rubric = Rubric.of(task)
        [responses] = yield [Want(task.prompt, self.n, self.sampling, self.by)]
        prompts = [self.question.prompts(task.question, r.text, rubric) for r in responses]
        replies = yield [Want(p, 1, MARKING, self.critic) for some in prompts for p in some]
        texts = iter([None if reply.stop == "error" else reply.text for [reply] in replies])
        return rubric, [self.question.read(rubric, [next(texts) for _ in some]) for some in prompts]


@dataclass(frozen=True, slots=True)
class Scored:
    """Notes the mean of what a task's rubric makes of a model's responses, as ``meta[note]``; drops none but unread.

    Args:
        n: responses.
        aggregate: see :func:`assay.verify.rubric.aggregate.aggregate_of`.
        note: the name of the mean.
        by, critic: roles of who answers and who marks.
        block, form: see :class:`assay.engines.marking.Question`.

    Raises:
        UsageError: no response, or an option that does not fit.
    """

    n: int = 4
    aggregate: Any = "mean"
    note: str = "score"
    by: str = "solver"
    critic: str = "critic"
    block: int = 0
    form: str = "json"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"step scored: {self.n} responses cannot be asked for")
        aggregate_of(self.aggregate)
        self._marking()

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task without a rubric."""
        for task in tasks:
            Rubric.of(task)

    def _marking(self) -> Marking:
        return Marking(self.n, self.by, self.critic, question=Question(self.block, self.form))

    def __call__(self, task: Task, here: Here) -> Work:
        rubric, marks = yield from self._marking().ask(task)
        values = [x for row in marks if (x := aggregate_of(self.aggregate)(rubric, row)) is not None]
        return noted(task, **{self.note: float(np.mean(values))}) if values else Dropped("no marks can be read")


@dataclass(frozen=True, slots=True)
class Band:
    """Keeps the tasks whose noted number lies between two quantiles of all of them, the bounds included.

    Args:
        low, high: quantiles, interpolated linearly.
        note: the name of the number in ``meta``.

    Raises:
        UsageError: no band in [0, 1]; a task without that number.
    """

    low: float = 0.25
    high: float = 0.75
    note: str = "score"

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise UsageError(f"step band: {self.low:g} to {self.high:g} are no two quantiles, one below the other")

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        found = [task.meta.get(self.note) for task in tasks]
        for task, x in zip(tasks, found, strict=True):
            if isinstance(x, bool) or not isinstance(x, int | float):
                raise UsageError(f"step band: task {task.id} has no meta[{self.note!r}]; put step 'scored' before")
        if not tasks:
            return [], {}
        values = np.asarray(found, dtype=float)
        low, high = np.quantile(values, [self.low, self.high])
        kept = [t for t, x in zip(tasks, values, strict=True) if low <= x <= high]
        return kept, {"too hard": int((values < low).sum()), "too easy": int((values > high).sum())}


@dataclass(frozen=True, slots=True)
class Windows:
    """Keeps a task that is neither too easy nor too hard, and of its rubric what is not nearly always met.

        mean of s_jk over responses j and criteria k in [low, high];   mean over j of 1[s_jk >= met] < most, for each k

    Means are over the marks that were read; a criterion none of whose marks was stays. Noted in ``meta["score"]`` and
    ``meta["rubric"]``.

    Source: ORBIT (arXiv 2510.15859); the bounds are choices.

    Args:
        n: responses.
        low, high: of the first window.
        met: the mark from which a criterion counts as met.
        most: bound of the second; above 1 keeps all criteria.
        by, critic: roles of who answers and who marks.
        block, form: see :class:`assay.engines.marking.Question`.

    Raises:
        UsageError: no response, or bounds out of range.
    """

    n: int = 8
    low: float = 0.1
    high: float = 0.9
    met: float = 0.5
    most: float = 0.9
    by: str = "solver"
    critic: str = "critic"
    block: int = 0
    form: str = "json"

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 <= self.low <= self.high <= 1 or not self.most > 0 or not 0 < self.met <= 1:
            raise UsageError(
                f"step windows: needs responses {self.n} >= 1, 0 <= low {self.low:g} <= high {self.high:g} <= 1, met "
                f"{self.met:g} in (0, 1] and most {self.most:g} > 0"
            )
        Question(self.block, self.form)

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task without a rubric."""
        for task in tasks:
            Rubric.of(task)

    def __call__(self, task: Task, here: Here) -> Work:
        marking = Marking(self.n, self.by, self.critic, question=Question(self.block, self.form))
        rubric, rows = yield from marking.ask(task)
        table = np.array([[np.nan if mark is None else mark for mark in row] for row in rows])
        read = table[~np.isnan(table)]
        if not len(read):
            return Dropped("no marks can be read")
        score = float(read.mean())
        if not self.low <= score <= self.high:
            return Dropped("too hard" if score < self.low else "too easy")
        columns = [column[~np.isnan(column)] for column in table.T]
        keep = [not len(column) or bool((column >= self.met).mean() < self.most) for column in columns]
        return noted(task, rubric=rubric.kept(keep).rows(), score=score) if any(keep) else Dropped("no criterion tells")
