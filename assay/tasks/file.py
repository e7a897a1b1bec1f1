"""Tasks from a file of rows."""

from __future__ import annotations

from pathlib import Path

from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.fields import Fields
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "file")
class File:
    """A JSONL, JSON, CSV, TSV or Parquet file, read and checked as a whole when made.

    Args:
        path: the file; its suffix says the format.
        prompt, reference, solution, id: field names or templates, see :class:`~assay.tasks.fields.Fields`.
        kind: the verifier, e.g. ``exact``, ``number``, ``none``.
        system: system message; makes the prompt a chat.
        chat: put the prompt in a user message, so that the model's chat template is applied.
        reference_after: keep only what follows this marker in the reference, e.g. ``####``.
        meta: fields to keep in ``task.meta``.

    Raises:
        UsageError: no such file, no rows, an unreadable row, or one without a mapped field, with its line.
    """

    def __init__(
        self,
        path: Path,
        prompt: str = "prompt",
        reference: str | None = "answer",
        solution: str | None = None,
        id: str | None = None,
        kind: str = "exact",
        system: str | None = None,
        chat: bool = False,
        reference_after: str | None = None,
        meta: tuple[str, ...] = (),
    ):
        path = Path(path)
        fields = Fields(prompt, reference, solution, id, kind, system, chat, reference_after, meta, path.name)
        self.tasks = fields.tasks(read_rows(path))

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]
