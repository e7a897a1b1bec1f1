"""Libra Bench as it is published: responses to problems that are right or wrong, to be judged without references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.files.huggingface import placed
from assay.tasks.judging.pointwise import TEMPLATE, Judged
from assay.tasks.seeded import check_index
from assay.types import Task

SHOWN = ("index", "question", "response", "label", "model")
SUBSET = ("subset", "source", "dataset")
LABELS = {"1": True, "0": False}


@part("tasks", "libra_bench")
class LibraBench:
    """Its 3,740 records as tasks of kind ``critique``; accuracy by subset (S226) goes by ``items``.

    Args:
        path: a file of it, or a place on the Hugging Face hub.
        template: of the prompt, with ``{question}`` and ``{response}``.

    Raises:
        UsageError: it cannot be loaded, has no rows, or one of another form, with its place.

    Source: Libra (arXiv 2507.21645) and its data set's page.
    """

    def __init__(self, path: str = "meituan/Libra-Bench", template: str = TEMPLATE):
        read = [_judged(where, row) for where, row in placed(path)]
        if not read:
            raise UsageError(f"tasks 'libra_bench': {path} has no rows")
        self.items = [item for _, item in read]
        self.tasks = [item.task(f"libra/{index}", template) for index, item in read]

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _judged(where: str, row: Any) -> tuple[str, Judged]:
    if not isinstance(row, Mapping) or not set(SHOWN) <= set(row):
        raise UsageError(f"{where} has not the fields {', '.join(SHOWN)}")
    right = LABELS.get(str(row["label"]))
    if right is None:
        raise UsageError(f"{where}: the label is {row['label']!r}, not 0 or 1")
    subset = next((str(row[name]) for name in SUBSET if name in row), "")
    item = Judged(str(row["question"]), str(row["response"]), right, str(row["model"]), subset)
    return str(row["index"]), item
