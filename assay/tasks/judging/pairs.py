"""Tasks of comparing two answers, from preferences on record: each in both orders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.asking import filled, judge_of, seed_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.records.files import write_text
from assay.registry import part
from assay.tasks.files.file import File
from assay.tasks.files.recorded import RecordedTasks
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task
from assay.verify.pair_scores import TEMPLATE, PairScores, untagged


@part("tasks", "pairs")
class Pairs:
    """Tasks of kind ``pair_scores``, from rows with ``prompt``, ``chosen`` and ``rejected``; see :func:`pair_tasks`.

    With a ``teacher`` each task also has a comparison as its worked solution, for the supervised start: the first of
    ``tries`` that comes to the right verdict in the right form. Tasks that it fails on are left out.

    Args:
        path: of preferences, see :class:`~assay.tasks.files.recorded.RecordedTasks`.
        seed: of the order.
        template: of the prompt, with ``{question}``, ``{first}`` and ``{second}``.
        teacher: the specification of an engine: an instruction-following model.
        tries, max_tokens: comparisons of each task, and their length.
        keep: a JSONL file of the tasks with their comparisons, made if it is not there and read if it is, so that a run
            that goes on has the same ones.

    Raises:
        UsageError: nothing there is of use; a teacher without ``keep``, or ``keep`` without a teacher or a file.
    """

    def __init__(
        self,
        path: Path,
        seed: int = 0,
        template: str = TEMPLATE,
        teacher: Any = None,
        tries: int = 4,
        max_tokens: int = 2048,
        keep: Path | None = None,
    ):
        check_seed("tasks 'pairs'", seed)
        if keep is not None and Path(keep).is_file():
            self.tasks = _kept(Path(keep))
            return
        if (teacher is None) != (keep is None):
            raise UsageError("tasks 'pairs': give teacher and keep together, or neither; a file keeps the comparisons")
        self.tasks = pair_tasks(RecordedTasks(Path(path)).tasks, np.random.default_rng(seed), template)
        if teacher is not None and keep is not None:
            engine = judge_of(teacher, "tasks 'pairs'")
            self.tasks = compared(self.tasks, engine, tries, Sampling(max_tokens))
            rows = [
                {"id": t.id, "prompt": t.prompt, "label": t.reference, "comparison": t.solution, **t.meta}
                for t in self.tasks
            ]
            if not rows:
                raise UsageError(
                    f"tasks 'pairs': none of {tries} comparisons of any pair came to the right verdict in the right "
                    "form; take a better teacher or more tries"
                )
            write_text(Path(keep), "".join(json.dumps(row) + "\n" for row in rows))
            self.tasks = _kept(Path(keep))

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _kept(path: Path) -> list[Task]:
    return File(path, "prompt", "label", "comparison", "id", "pair_scores", meta=("pair",)).tasks


def pair_tasks(
    preferences: Sequence[Task], rng: np.random.Generator, template: str = TEMPLATE, kind: str = "pair_scores"
) -> list[Task]:
    """Return two tasks for each preference, in an order by lot: the better answer shown first, and second.

    Args:
        preferences: tasks whose ``meta["responses"]`` are a better and a worse one.
        rng: of the order.
        template: see :class:`Pairs`.
        kind: of the tasks, the verifier of what is asked for.

    Returns:
        Tasks of that kind whose reference, 1 or 2, says which is better; ``meta["pair"]`` is the number of
        the preference.

    Raises:
        UsageError: a template that does not show both, or a row that is no preference.
    """
    if any(f"{{{name}}}" not in template for name in ("question", "first", "second")):
        raise UsageError("tasks 'pairs': the template must show {question}, {first} and {second}")
    out = []
    for k, task in enumerate(preferences):
        found = task.meta.get("responses", ())
        if [r.get("reward") for r in found] != [1.0, 0.0]:
            raise UsageError(f"tasks 'pairs': {task.id} is no preference; a row has prompt, chosen and rejected")
        better, worse = (str(r["text"]) for r in found)
        for label, (first, second) in (("1", (better, worse)), ("2", (worse, better))):
            prompt = filled(template, question=task.question, first=untagged(first), second=untagged(second))
            out.append(Task(f"{task.id}/{label}", prompt, label, kind, meta={"pair": k}))
    return [out[i] for i in rng.permutation(len(out)).tolist()]


def compared(tasks: Sequence[Task], teacher: Engine, tries: int, sampling: Sampling) -> list[Task]:
    """Return the tasks with a comparison that is right as their solution, by rejection; others are left out."""
    asked = [Request(t.prompt, tries, sampling, seed_of(str(t.prompt))) for t in tasks]
    judge, out = PairScores(), []
    for task, replies in zip(tasks, teacher.generate(asked), strict=True):
        right = next((r.text for r in replies if r.stop != "error" and judge(task, r.text).passed), None)
        if right is not None:
            out.append(replace(task, solution=right))
    return out


@dataclass(frozen=True, slots=True)
class Orders:
    """How a judge does by the order that pairs are shown in.

    Attributes:
        first, second: share of right verdicts where the better answer is shown first, and second.
        both: of pairs that it is right about in both orders.
        bias: P(the first is preferred) - 1/2, which is (first - second) / 2.
    """

    first: float
    second: float
    both: float
    bias: float


def by_order(tasks: Sequence[Task], passed: Sequence[bool]) -> Orders:
    """Return what verdicts on tasks of :func:`pair_tasks` come to by order; a pair has to be there in both.

    Raises:
        ValueError: no pair is there in both orders.
    """
    pairs: dict[int, dict[str, bool]] = {}
    for task, right in zip(tasks, passed, strict=True):
        pairs.setdefault(task.meta["pair"], {})[str(task.reference)] = right
    whole = [(found["1"], found["2"]) for found in pairs.values() if len(found) == 2]
    if not whole:
        raise ValueError("no pair was judged in both orders")
    first, second = (float(np.mean(column)) for column in zip(*whole, strict=True))
    return Orders(first, second, float(np.mean([all(pair) for pair in whole])), (first - second) / 2)
