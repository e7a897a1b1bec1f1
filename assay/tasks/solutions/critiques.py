"""Solutions that were judged, as tasks for a verifier: is this one right, and why?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.config import load_config
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import build, part
from assay.tasks.base import TaskSource
from assay.tasks.configured import GIVEN
from assay.tasks.files.file import File
from assay.tasks.seeded import check_index, check_seed
from assay.tasks.solutions.critique_data import balanced, critique_tasks, critiques_with_hint
from assay.types import Ask, Episode, Group, Task, Verdict

STORED = ("task_id", "prompt", "response", "passed")
"""Columns of a run's rollouts and of an evaluation's samples; ``passed`` is empty for an abstention."""


@part("tasks", "critiques")
class Critiques:
    """Tasks of kind ``critique``, (question, solution) -> True or False, from solutions that were sampled and judged.

    See :func:`~.critique_data.critique_tasks` for which. With a ``critic`` each task also has a critique as
    its worked solution, for the supervised warm-up, see :func:`~.critique_data.critiques_with_hint`; tasks
    it fails on are left out.

    Args:
        path: the folder of a run (all of its stored rollouts) or of an evaluation, or a file of samples that say
            which are right, as :class:`assay.records.foreign.Reader` reads them.
        most: accuracy of a question at most.
        seed: of all lots.
        template: of the prompt, with ``{question}`` and ``{response}``; by default that of scorer ``judge``.
        fields, threshold: of a file, see the reader.
        critic: the specification of an engine: an instruction-following model. It is shown the right answers, and the
            worked solutions where ``solved`` has them.
        solved: the specification of the task source that was solved, in which worked solutions are found by the id of
            the task; the run's own, where ``path`` is a run, unless given; ``False`` to do without.
        tries, max_tokens: critiques of each task, and their length.
        keep: a JSONL file of the tasks with their critiques, made if it is not there and read if it is, so that a run
            that goes on has the same ones.

    Raises:
        UsageError: nothing there is of use; a critic without ``keep``, or ``keep`` without a critic or a file;
            ``solved`` has no end.
    """

    def __init__(
        self,
        path: Path,
        most: float = 1.0,
        seed: int = 0,
        template: str | None = None,
        fields: dict[str, str] | None = None,
        threshold: float | None = None,
        critic: Any = None,
        solved: Any = None,
        tries: int = 8,
        max_tokens: int = 1024,
        keep: Path | None = None,
    ):
        check_seed("tasks 'critiques'", seed)
        if keep is not None and Path(keep).is_file():
            self.tasks = read_critiques(Path(keep))
            return
        if (critic is None) != (keep is None):
            raise UsageError(
                "tasks 'critiques': a critic's answers are kept in a file, and nothing else is: give critic and keep "
                "together, or neither"
            )
        rng = np.random.default_rng(seed)
        groups = judged_groups(Path(path), fields or {}, threshold)
        if critic is not None and solved is not False:
            groups = with_solutions(groups, _source_of(Path(path)) if solved is None else build("tasks", solved))
        self.tasks = critique_tasks(groups, rng, most, template)
        if not self.tasks:
            raise UsageError(
                f"{path}: none of its {len(groups)} questions has both right and wrong solutions with accuracy at most "
                f"{most:g}, which is what a verifier learns from"
            )
        if critic is not None and keep is not None:
            from assay.engines.base import Sampling

            engine = build("engine", critic)
            found = critiques_with_hint(self.tasks, engine, rng, tries, Sampling(max_tokens))
            self.tasks = balanced(found, rng)
            if not self.tasks:
                raise UsageError(
                    f"tasks 'critiques': of {tries} critiques of each of {len(groups)} questions' solutions none, or "
                    "none of one label, came to the right verdict; take a better critic or more tries"
                )
            write_critiques(Path(keep), self.tasks)

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def judged_groups(path: Path, fields: Mapping[str, str], threshold: float | None) -> list[Group]:
    """Return the judged solutions of a file, or of all files of a run or an evaluation, one group per question.

    Raises:
        UsageError: there are none, or something in a file does not fit, with its line.
    """
    files = [path]
    if path.is_dir():
        files = sorted([*path.glob("rollouts/step-*.parquet"), *path.glob("samples/part-*.parquet")])
        if not files:
            raise UsageError(f"{path} holds neither the rollouts of a run nor the samples of an evaluation")
    tasks: dict[str, Task] = {}
    given: dict[str, list[tuple[str, bool | None]]] = {}
    for file in files:
        for task, text, passed in _samples(file, fields, threshold):
            tasks.setdefault(task.id, task)
            given.setdefault(task.id, []).append((text, passed))
    return [
        Group(Ask(tasks[key], len(rows)), tuple(_episode(t) for t, _ in rows), tuple(_verdict(p) for _, p in rows))
        for key, rows in given.items()
    ]


def with_solutions(groups: Sequence[Group], source: TaskSource | None) -> list[Group]:
    """Give the groups' tasks the worked solution, and where they have none the reference, that a source has of their
    id.

    Raises:
        UsageError: the source has no end.
    """
    if source is None:
        return list(groups)
    if source.size is None:
        raise UsageError("tasks 'critiques': solved has no end, so that solutions cannot be looked up; set it to false")
    wanted, out = {g.task.id for g in groups}, []
    known = {task.id: task for i in range(source.size) if (task := source[i]).id in wanted}
    for group in groups:
        task, found = group.task, known.get(group.task.id)
        if found is not None:
            reference = found.reference if task.reference is None else task.reference
            task = replace(task, reference=reference, solution=found.solution)
        out.append(replace(group, ask=replace(group.ask, task=task)))
    return out


def write_critiques(path: Path, tasks: Sequence[Task]) -> None:
    """Write tasks with their critiques as JSONL, whole or not at all."""
    from assay.records.files import write_text

    rows = ({"id": t.id, "prompt": t.prompt, "label": t.reference, "critique": t.solution, **t.meta} for t in tasks)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def read_critiques(path: Path) -> list[Task]:
    """Read what :func:`write_critiques` wrote; raise UsageError where it does not fit."""
    kept = ("question", "answer", "response")
    return File(path, "prompt", "label", "critique", "id", "critique", meta=kept).tasks


def _samples(file: Path, fields: Mapping[str, str], threshold: float | None) -> list[tuple[Task, str, bool | None]]:
    """Return question, solution and verdict of each row."""
    rows = list(read_rows(file))
    if not fields and all(isinstance(r, Mapping) and set(STORED) <= r.keys() for _, r in rows):
        return [
            (Task(str(r["task_id"]), str(r["prompt"]), r.get("reference")), str(r["response"]), r["passed"])
            for _, r in rows
        ]
    from assay.records.foreign import Reader

    found = Reader(fields, threshold=threshold).read(file)
    return [(t.task, g.text, g.passed) for t in found for g in t.given]


def _source_of(path: Path) -> TaskSource | None:
    """The tasks of a run, if they can be made again and have an end."""
    if not (path / "config.toml").is_file():
        return None
    said = load_config(path / "config.toml").tasks.source
    source = None if said == GIVEN else build("tasks", said)
    return None if source is None or source.size is None else source


def _episode(text: str) -> Episode:
    none = np.zeros(0, dtype=np.int64)
    return Episode(none, none, none.astype(bool), None, text, "eos")


def _verdict(passed: bool | None) -> Verdict:
    return Verdict.abstain("not judged") if passed is None else Verdict.right() if passed else Verdict.wrong()
