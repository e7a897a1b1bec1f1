"""Pairs of answers to be judged, of some of which a person has said why one is better."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.files.recorded import RecordedTasks
from assay.tasks.judging.pairs import pair_tasks
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task
from assay.verify.pair_critique import TEMPLATE

_NUMBER = re.compile(r"\b((?:answer|response|assistant|output|model)s?\s*[@#]?)([12])\b", re.IGNORECASE)


def renumbered(text: str) -> str:
    """Return what is said of ``answer 1`` (response, assistant, output, model) as said of answer 2, and so about."""
    return _NUMBER.sub(lambda found: f"{found[1]}{3 - int(found[2])}", text)


@part("tasks", "critiqued_pairs")
class CritiquedPairs:
    """Tasks of kind ``pair_verdict`` from rows with ``prompt``, ``chosen`` and ``rejected``, each in both orders.

    A row may also have ``critique``, what a person wrote of the pair, or ``points``, a list of what that comes to: they
    are in ``meta`` of its tasks, and say which branch of the reward these belong to. They speak of answer 1 and 2;
    ``first``, ``chosen`` (unless given) or ``rejected``, says which one they call the first, and they are renumbered
    where the other one is shown first.

    Args:
        path: the file.
        seed: of the order.
        template: of the prompt, with ``{question}``, ``{first}`` and ``{second}``.

    Raises:
        UsageError: a row of another form, with its line, or a template that does not show both.
    """

    def __init__(self, path: Path, seed: int = 0, template: str = TEMPLATE):
        check_seed("tasks 'critiqued_pairs'", seed)
        preferences = RecordedTasks(Path(path)).tasks
        said = [_said(where, row) for where, row in read_rows(Path(path))]
        tasks = pair_tasks(preferences, np.random.default_rng(seed), template, "pair_verdict")
        self.tasks = [_with(task, *said[task.meta["pair"]]) for task in tasks]

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _said(where: str, row: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a row's critique and points, and whether they call the chosen answer the first."""
    critique, points, first = row.get("critique") or "", row.get("points") or [], row.get("first", "chosen")
    listed = isinstance(points, list) and all(isinstance(x, str) and x.strip() for x in points)
    if not isinstance(critique, str) or not listed or first not in ("chosen", "rejected"):
        raise UsageError(f"{where}: critique is a text, points a list of texts, and first is chosen or rejected")
    told = {"critique": critique, "points": points}
    return {name: value for name, value in told.items() if value}, first == "chosen"


def _with(task: Task, told: Mapping[str, Any], chosen: bool) -> Task:
    if (str(task.reference) == "1") is not chosen:
        told = {k: renumbered(v) if isinstance(v, str) else [renumbered(x) for x in v] for k, v in told.items()}
    return replace(task, meta={**task.meta, **told})
