"""The tasks that a configuration asks for: a stream to train on, and those held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.config import RunConfig
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.base import TaskSource
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream, every, split
from assay.types import Task

GIVEN = "given"
"""Stands in a configuration for a Python object, which a resumed run needs again."""


def task_split(config: RunConfig, tasks: TaskSource | Sequence[Task] | None = None) -> tuple[TrainStream, list[Task]]:
    """Return the stream of training tasks and the held-out ones."""
    check_given(config, {"tasks": tasks})
    if config.tasks.eval_share == 1:
        raise UsageError("tasks.eval_share 1 leaves no task to train on; lower it")
    source = build("tasks", config.tasks.source) if tasks is None else tasks
    if isinstance(source, Sequence):
        source = Listed(source)
    size = config.tasks.eval_size
    return split(source, config.tasks.eval_share, None if size == "auto" else size, config.seed, _key(config))


def held_out(config: RunConfig) -> list[Task]:
    """Return the tasks that a model is measured on: the held-out ones, or with an ``eval_share`` of 1 all that the
    source has, of which ``eval_size`` takes an unbiased sample.

    Raises:
        UsageError: the source is too small, or all of an endless one are asked for.
    """
    size = config.tasks.eval_size
    if config.tasks.eval_share < 1:
        return task_split(config)[1]
    check_given(config, {"tasks": None})
    return every(build("tasks", config.tasks.source), None if size == "auto" else size, _key(config))


def _key(config: RunConfig) -> int:
    """What decides which tasks are held out."""
    return config.seed if config.tasks.eval_seed is None else config.tasks.eval_seed


def check_given(config: RunConfig, given: Mapping[str, Any]) -> None:
    """Raise UsageError if an object is missing that the configuration says was given, or one is too many."""
    said = {"tasks": config.tasks.source, "method": config.method.name, "reward": config.method.reward}
    for key, value in given.items():
        if said[key] == GIVEN and value is None:
            raise UsageError(f"the {key} of this run came as a Python object; call assay.train(resume=..., {key}=...)")
        if value is not None and said[key] != GIVEN:
            raise UsageError(f"the {key} of this run stands in its config.toml; leave out {key}=... to continue it")
