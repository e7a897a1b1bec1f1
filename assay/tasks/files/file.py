"""Tasks from a file of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.files.fields import MARK, REFERENCES, SOLUTIONS, Fields, chosen, instructed, kind_of, prompt_of
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "file")
class File:
    """A JSONL, JSON, CSV, TSV or Parquet file, or a folder of such files, read and checked as a whole when made.

    Args:
        path: the file; its suffix says the format, with ``.gz`` behind it if it is compressed.
        prompt, reference, solution, id: field names or templates, see :class:`.fields.Fields`. ``auto``
            takes the field with a usual name, see ``PROMPTS`` there; of the solution where there is none, the
            reference's unless that is a table; of the reference where there is none, no reference.
        kind: the verifier, e.g. ``exact``, ``number``, ``none``; ``auto`` goes by the references, of tables ``none``.
        system: system message; makes the prompt a chat.
        chat: put the prompt in a user message, so that the model's chat template is applied.
        reference_after: keep only what follows this marker in the reference, e.g. ``####``.
        meta: fields to keep in ``task.meta``.
        hints: field with a list of texts that may be revealed, weakest first; an empty list is no hint.
        images: field with a picture, or a list of them: paths from the file's folder, or bytes. They stand where the
            prompt says ``<image>``, before it where it does not.

    Raises:
        UsageError: no such file, no rows, an unreadable row, or one without a mapped field, with its line.
    """

    def __init__(
        self,
        path: Path,
        prompt: str = "prompt",
        reference: str | tuple[str, ...] | None = "answer",
        solution: str | None = None,
        id: str | None = None,
        kind: str = "exact",
        system: str | None = None,
        chat: bool = False,
        reference_after: str | None = None,
        meta: tuple[str, ...] = (),
        hints: str | None = None,
        images: str | None = None,
    ):
        path = Path(path)
        judged = kind, system, chat, reference_after, meta, path.name, hints
        fields = Fields(prompt, reference, solution, id, *judged, images, path.parent)
        self.tasks, self.described = read_tasks(list(read_rows(path)), str(path), fields)
        """What was found in the file, in a line."""

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


class Rows:
    """Rows given from Python, each a table, of which fields are found by their usual names, as in a file.

    Args:
        rows: lists of tables, or anything whose elements are, such as a data set of the library ``datasets``.

    Raises:
        UsageError: no rows, an unreadable row, or one without a field that the first one has.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]):
        found = [(f"element {i} of tasks", row) for i, row in enumerate(rows)]
        usual = Fields("auto", "auto", "auto", None, "auto", None, False, None, (), "tasks")
        self.tasks, self.described = read_tasks(found, "tasks", usual)

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def read_tasks(rows: Sequence[tuple[str, Any]], name: str, fields: Fields) -> tuple[list[Task], str]:
    """Return the tasks of rows, and what was found in them, in a line.

    Args:
        rows: each with where it is, for errors.
        name: of what they are from.
        fields: how they are read; of ``auto`` among them, see :class:`File`.
    """
    if rows and isinstance(row := rows[0][1], Mapping):
        reference, after = fields.reference, fields.reference_after
        if reference == "auto":
            reference = chosen("auto", REFERENCES, row)
            if reference is not None and after is None:
                marked = all(isinstance(r, Mapping) and MARK in str(r.get(reference, "")) for _, r in rows)
                after = MARK if marked else None
        shown = reference if isinstance(reference, str) and not isinstance(row.get(reference), Mapping) else None
        solution = (chosen("auto", SOLUTIONS, row) or shown) if fields.solution == "auto" else fields.solution
        prompt = prompt_of(fields.prompt, row, name)
        if fields.prompt == "auto" and prompt == "instruction":
            rows = [(where, instructed(each)) for where, each in rows]
        fields = replace(fields, prompt=prompt, reference=reference, solution=solution, reference_after=after)
    tasks, kind = fields.tasks(rows), fields.kind
    if kind == "auto":
        kind = kind_of([task.reference for task in tasks])
        tasks = [replace(task, kind=kind) for task in tasks]
    what = "by the reward alone" if kind == "none" else f"as {kind}"
    if fields.reference is None:
        there = ", ".join(rows[0][1])
        what += f", as none of its fields is taken for the answer ({there}): reference=FIELD names one"
    if tasks and all(not isinstance(t.prompt, str) and t.prompt[-1]["role"] == "assistant" for t in tasks):
        what += "; they end with an answer, which `assay train sft` learns and this asks to go on from"
    answered = f"answered by {fields.reference!r}, " if fields.reference is not None else ""
    return tasks, f"{name}: {len(tasks):,} tasks, asked from {fields.prompt!r}, {answered}judged {what}"
