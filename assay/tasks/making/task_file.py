"""Task files: what a pipeline writes, and anybody can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.media import Picture
from assay.records.files import write_file
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.files.file import File
from assay.tasks.seeded import check_index
from assay.types import Message, Prompt, Task

FIELDS = ("id", "prompt", "reference", "kind")
"""What every row of a task file has; ``solution``, ``hints`` and ``meta`` where there are any."""

RECORDED = "responses"
"""Of a task's meta, what has a field of its own, so that tasks ``recorded`` reads the file as preferences."""


def row_of(task: Task) -> dict[str, Any]:
    """Return a task as a row; pictures are ``data:`` URLs in it."""
    row = {"id": task.id, "prompt": _written(task.prompt), "reference": task.reference, "kind": task.kind}
    meta = {name: value for name, value in task.meta.items() if name != RECORDED}
    more = {"solution": task.solution, "hints": task.hints, RECORDED: task.meta.get(RECORDED), "meta": meta}
    return row | {name: value for name, value in more.items() if value}


def _written(prompt: Prompt) -> Any:
    if isinstance(prompt, str):
        return prompt
    return [m | {"images": [p.url for p in m["images"]]} if "images" in m else m for m in prompt]


def _message(row: Mapping[str, Any], where: str) -> Message:
    if "images" not in row:
        return Message(**row)  # type: ignore[typeddict-item]
    try:
        return Message(**{**row, "images": tuple(Picture.from_url(url) for url in row["images"])})  # type: ignore[typeddict-item]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    except (AttributeError, TypeError):
        raise UsageError(f"{where}: field 'images' of a message is no list of data: URLs") from None


def write_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """Write tasks as JSONL, a row a task, in one step.

    Raises:
        UsageError: a task that JSON cannot hold.
    """

    def lines(file: Path) -> None:
        with file.open("w", encoding="utf-8") as out:
            for task in tasks:
                try:
                    out.write(json.dumps(row_of(task), ensure_ascii=False) + "\n")
                except (TypeError, ValueError) as error:
                    raise UsageError(f"task {task.id} cannot be written as JSON: {error}") from None

    write_file(path, lines)


def task_of(row: Mapping[str, Any], where: str) -> Task:
    """Return the task of a row.

    Raises:
        UsageError: the row is not as :func:`row_of` makes them; says where.
    """
    if missing := [name for name in FIELDS if name not in row]:
        raise UsageError(f"{where} has no field {missing[0]!r}; a task file's rows have {', '.join(FIELDS)}")
    prompt, kind = row["prompt"], row["kind"]
    if isinstance(prompt, list):
        if not all(isinstance(m, Mapping) and {"role", "content"} <= {*m} for m in prompt):
            raise UsageError(f"{where}: field 'prompt' is neither text nor a list of messages")
        prompt = tuple(_message(m, where) for m in prompt)
    elif not isinstance(prompt, str):
        raise UsageError(f"{where}: field 'prompt' is neither text nor a list of messages")
    if not isinstance(kind, str):
        raise UsageError(f"{where}: field 'kind' is {kind!r}, not the name of a verifier")
    meta, hints = row.get("meta") or {}, row.get("hints") or ()
    if RECORDED in row and isinstance(meta, Mapping):
        meta = {**meta, RECORDED: row[RECORDED]}
    if not isinstance(meta, Mapping) or not isinstance(hints, list | tuple):
        raise UsageError(f"{where}: field 'meta' is no table, or field 'hints' no list")
    return Task(str(row["id"]), prompt, row["reference"], kind, row.get("solution"), tuple(hints), dict(meta))


def read_tasks(path: Path) -> list[Task]:
    """Return the tasks of a file: of a task file as they were written, of another as tasks ``file`` guesses them.

    Raises:
        UsageError: no such file, or it has no tasks.
    """
    rows = list(read_rows(path))
    if rows and all(isinstance(row, Mapping) and {*FIELDS} <= {*row} for _, row in rows):
        return [task_of(row, where) for where, row in rows]
    return File(path, "auto", "auto", "auto", kind="auto").tasks


@part("tasks", "made")
class MadeTasks:
    """A task file as ``assay tasks make`` writes it: each row says its own kind, reference, solution, hints and meta.

    Args:
        path: the file.

    Raises:
        UsageError: no such file, no rows, one that is no task, or two of one id.
    """

    def __init__(self, path: Path):
        self.tasks: list[Task] = []
        for where, row in read_rows(path):
            if not isinstance(row, Mapping):
                raise UsageError(f"{where} is a {type(row).__name__}, not a table of fields")
            self.tasks.append(task_of(row, where))
        if not self.tasks:
            raise UsageError(f"{path} has no rows")
        if len({task.id for task in self.tasks}) < len(self.tasks):
            raise UsageError(f"{path} has two rows of one id; ids must be unique")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]
