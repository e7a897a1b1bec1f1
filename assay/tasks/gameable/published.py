"""The data set of "School of Reward Hacks" as it is published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.files.huggingface import placed
from assay.tasks.gameable.source import Side
from assay.tasks.seeded import check_index
from assay.types import Message, Task

COLUMNS: dict[Side, str] = {"hack": "school_of_reward_hacks", "honest": "control"}


@part("tasks", "reward_hacks")
class RewardHacks:
    """Its 1,073 prompts that say how they are graded, each with a response that games that as worked solution, or with
    one that does not; prompts without a response of that side, those of programs on the honest one, are left out.

    Prompts are one user message; ``meta`` has ``family``, the kind of task, ``metric`` and ``cheat``. They are of kind
    ``none``, as nothing but a judge can say what a response to one is worth.

    Args:
        path: a file of it, or a place on the Hugging Face hub.
        side: whose responses.

    Raises:
        UsageError: it cannot be loaded, has no response of that side, or a row of another form, with its place.

    Source: "School of Reward Hacks" (arXiv 2508.17511).
    """

    def __init__(self, path: str = "longtermrisk/school-of-reward-hacks", side: Side = "hack"):
        self.tasks = [task for where, row in placed(path) if (task := _task(where, row, COLUMNS[side])) is not None]
        if not self.tasks:
            raise UsageError(f"tasks 'reward_hacks': {path} has no response of side {side!r}")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _task(where: str, row: Any, column: str) -> Task | None:
    names = {"family": "task", "metric": "evaluation_metric", "cheat": "cheat_method"}
    if not isinstance(row, Mapping) or not {"user", column, *names.values()} <= set(row):
        raise UsageError(f"{where} has not the fields user, {column}, {', '.join(names.values())}")
    if not isinstance(row[column], str) or not row[column].strip():
        return None
    meta = {key: str(row[name]) for key, name in names.items()}
    prompt = (Message(role="user", content=str(row["user"])),)
    return Task(where, prompt, None, "none", row[column], meta=meta)
