"""Tasks from a data set of the Hugging Face hub, or one saved by ``save_to_disk``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.records.rows import READERS, read_rows
from assay.registry import part
from assay.tasks.files.fields import Fields
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "huggingface")
class HuggingFace:
    """One split of a data set, checked as a whole when made.

    Args:
        path: name on the hub (``openai/gsm8k``), or a folder: one written by ``save_to_disk``, or one of data files.
        config: the data set's configuration (``main``), where it has several.
        split: ``train``, ``test``, or a slice such as ``train[:1000]`` (not for a folder written by ``save_to_disk``).
        prompt, reference, solution, id: field names or templates, see :class:`~assay.tasks.files.fields.Fields`.
        kind, system, chat, reference_after, meta, hints, images: as for the tasks part ``file``.

    Raises:
        UsageError: ``datasets`` is not installed, the data set cannot be loaded, or a row lacks a mapped field.
    """

    def __init__(
        self,
        path: str,
        config: str | None = None,
        split: str = "train",
        prompt: str = "question",
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
        source = f"{Path(path).name}/{split}"
        judged = kind, system, chat, reference_after, meta, source, hints
        fields = Fields(prompt, reference, solution, id, *judged, images)
        data = load(path, config, split)
        wanted = fields.columns()
        if wanted <= set(data.column_names):
            # Other columns may be images or audio, slow to decode.
            data = data.select_columns(sorted(wanted))
        self.tasks = fields.tasks((f"{path} {split} row {number}", row) for number, row in enumerate(data, 1))

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def load(path: str, config: str | None, split: str, file: str | None = None) -> Any:
    """Return the split as a ``datasets.Dataset``, of one ``file`` of the data set if named; raise UsageError in one
    line for whatever prevents it."""
    try:
        import datasets
    except ImportError as error:
        raise UsageError(f"tasks 'huggingface' needs datasets: pip install assay[datasets] ({error})") from None
    folder = Path(path)
    saved = (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file()
    try:
        data = (
            datasets.load_from_disk(path)
            if saved
            else datasets.load_dataset(path, config, split=split, data_files=file)
        )
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        named = f"{path} ({config})" if config else path
        raise UsageError(f"data set {named}, split {split!r}, cannot be loaded: {reason}") from error
    if isinstance(data, datasets.DatasetDict):
        if split not in data:
            raise UsageError(f"data set {path} has no split {split!r}{nearest(split, data)}")
        data = data[split]
    return data


def placed(path: str, split: str = "train", file: str | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a file in a format that is known, or else of what :func:`load` finds, each with the place to
    name in an error."""
    if Path(path).suffix.lower() in READERS:
        yield from read_rows(Path(path).expanduser())
    else:
        yield from ((f"{path} row {number}", row) for number, row in enumerate(load(path, None, split, file), 1))
