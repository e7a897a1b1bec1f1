"""RefineBench as it is published: problems with checklists."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.files.huggingface import placed
from assay.tasks.seeded import check_index
from assay.types import Message, Task

SHOWN = ("index", "field", "subject", "question", "checklist")


@part("tasks", "refinebench")
class RefineBench:
    """Its 1,000 problems: one user message with the question and what materials go with it, ``meta["rubric"]`` the
    items of the checklist, ``meta`` also ``field`` and ``subject``, the reference the answers that are given.

    They are of kind ``none``: items are marked by a :class:`~assay.rewards.judges.rubric_judge.RubricJudge`.

    Args:
        path: a file of it, or a place on the Hugging Face hub.

    Raises:
        UsageError: it cannot be loaded, has no rows, or one of another form, with its place.

    Source: RefineBench (arXiv 2511.22173).
    """

    def __init__(self, path: str = "RefineBench/RefineBench"):
        self.tasks = [_task(where, row) for where, row in placed(path)]
        if not self.tasks:
            raise UsageError(f"tasks 'refinebench': {path} has no rows")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _task(where: str, row: Any) -> Task:
    if not isinstance(row, Mapping) or not set(SHOWN) <= set(row):
        raise UsageError(f"{where} has not the fields {', '.join(SHOWN)}")
    items = row["checklist"]
    if not isinstance(items, Sequence) or isinstance(items, str) or not items:
        raise UsageError(f"{where}: the checklist is no list of texts")
    texts = [str(row["question"]), *map(_material, row.get("materials") or ())]
    meta = {"rubric": [str(item) for item in items], "field": str(row["field"]), "subject": str(row["subject"])}
    answers = list(row.get("reference_answer") or ())
    return Task(str(row["index"]), (Message(role="user", content="\n\n".join(texts)),), answers, "none", meta=meta)


def _material(material: Any) -> str:
    """A material is a table with its content, as it is or written as Python has it, or a text."""
    if isinstance(material, str) and material.startswith("{"):
        try:
            material = ast.literal_eval(material)
        except (ValueError, SyntaxError):
            return str(material)
    return str(material["content"]) if isinstance(material, Mapping) and "content" in material else str(material)
