"""The tasks that a configuration asks for: a stream to train on, and those held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.config import RunConfig
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.base import TaskSource
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream, split
from assay.types import Task

GIVEN = "given"
"""Stands in a configuration for a Python object, which a resumed run needs again."""


def task_split(config: RunConfig, tasks: TaskSource | Sequence[Task] | None = None) -> tuple[TrainStream, list[Task]]:
    """Return the stream of training tasks and the held-out ones."""
    check_given(config, {"tasks": tasks})
    source = build("tasks", config.tasks.source) if tasks is None else tasks
    if isinstance(source, Sequence):
        source = Listed(source)
    size = config.tasks.eval_size
    return split(source, config.tasks.eval_share, None if size == "auto" else size, config.seed)


def check_given(config: RunConfig, given: Mapping[str, Any]) -> None:
    """Raise UsageError if an object is missing that the configuration says was given, or one is too many."""
    said = {"tasks": config.tasks.source, "method": config.method.name, "reward": config.method.reward}
    for key, value in given.items():
        if said[key] == GIVEN and value is None:
            raise UsageError(f"the {key} of this run came as a Python object; call assay.train(resume=..., {key}=...)")
        if value is not None and said[key] != GIVEN:
            raise UsageError(f"the {key} of this run stands in its config.toml; leave out {key}=... to continue it")
