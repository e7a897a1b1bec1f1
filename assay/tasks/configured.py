"""The tasks that a configuration asks for: a stream to train on, and those held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.config import RunConfig
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.base import TaskSource
from assay.tasks.eval_sources import LABEL, eval_sources, held_back, specs, tasks_of
from assay.tasks.files.file import Rows
from assay.tasks.fitting import Fits
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream, every, split, without
from assay.types import Task

GIVEN = "given"
"""Stands in a configuration for a Python object, which a resumed run needs again."""


def task_split(
    config: RunConfig,
    tasks: TaskSource | Sequence[Task] | None = None,
    eval_tasks: TaskSource | Sequence[Task] | None = None,
) -> tuple[TrainStream, list[Task]]:
    """Return the stream of training tasks and the held-out ones.

    Args:
        config: names both, or says that they are :data:`GIVEN`.
        tasks, eval_tasks: then these.

    Raises:
        UsageError: a source does not fit, or is too small.
    """
    check_given(config, {"tasks": tasks, "eval_tasks": eval_tasks})
    apart = config.tasks.eval_source is not None
    if config.tasks.eval_share == 1 and not apart:
        raise UsageError("tasks.eval_share 1 leaves no task to train on; lower it")
    source = build("tasks", config.tasks.source) if tasks is None else _listed(tasks)
    read: list[TaskSource] = [source]
    if apart:
        sources, found = _measured(config, eval_tasks)
        read += sources.values()
        stream = without(source, held_back(sources, found), config.seed)
    else:
        stream, found = split(source, config.tasks.eval_share, _size(config), config.seed, _key(config))
    stream.described = [said for each in read if (said := getattr(each, "described", None))]
    if (fits := _fits(config)) is not None:
        stream.fits = fits
        found = _fitting(found, fits)
        if source.size is not None and not stream.all():
            raise UsageError(
                f"no task to train on has a prompt of {config.tasks.max_prompt} tokens or fewer; raise tasks.max_prompt"
            )
    return stream, found


def held_out(config: RunConfig) -> list[Task]:
    """Return the tasks that a model is measured on: the held-out ones, or with an ``eval_share`` of 1 all that the
    source has, of which ``eval_size`` takes an unbiased sample.

    Raises:
        UsageError: the source is too small, or all of an endless one are asked for.
    """
    if config.tasks.eval_source is not None:
        check_given(config, {"eval_tasks": None})
        return _fitting(_measured(config)[1], _fits(config))
    if config.tasks.eval_share < 1:
        return task_split(config)[1]
    check_given(config, {"tasks": None})
    return _fitting(every(build("tasks", config.tasks.source), _size(config), _key(config)), _fits(config))


def _fits(config: RunConfig) -> Fits | None:
    """Return what says which prompts are not too long; ``None`` where none is."""
    return None if config.tasks.max_prompt is None else Fits(config.model, config.tasks.max_prompt)


def _fitting(tasks: list[Task], fits: Fits | None) -> list[Task]:
    """Return the tasks whose prompts are not too long; raise UsageError where none is left."""
    if fits is None:
        return tasks
    found = list(filter(fits, tasks))
    if not found:
        raise UsageError(f"tasks.max_prompt {fits.most} leaves no held-out task; raise it")
    return found


def held_out_of(config: RunConfig) -> Any:
    """Return the part that held-out tasks come from; of several a list, each with its label, ``as``."""
    if config.tasks.eval_source is None:
        return config.tasks.source
    found = specs(config.tasks.eval_source, config.tasks.source)
    several = [{**({"name": spec} if isinstance(spec, str) else spec), LABEL: label} for label, spec in found.items()]
    return several if len(several) > 1 else next(iter(found.values()))


def _measured(
    config: RunConfig, given: TaskSource | Sequence[Task] | None = None
) -> tuple[dict[str, TaskSource], list[Task]]:
    """Return the sources that nothing but held-out tasks come from, by label, and the tasks that are measured."""
    said = config.tasks.eval_source
    sources = {GIVEN: _listed(given)} if given is not None else eval_sources(said, config.tasks.source)
    return sources, tasks_of(sources, _size(config), _key(config))


def _listed(tasks: Any) -> TaskSource:
    """Return a source of what was given: one, a list of tasks, or of tables that are read as a file's rows are, also a
    data frame of them."""
    if hasattr(tasks, "iterrows"):  # of pandas, whose size is something else
        tasks = tasks.to_dict("records")
    if hasattr(tasks, "size") and not isinstance(tasks, Sequence):
        return tasks
    found = list(tasks)
    return Rows(found) if found and all(isinstance(row, Mapping) for row in found) else Listed(found)


def _size(config: RunConfig) -> int | None:
    """How many held-out tasks are measured; ``None`` for as many as there are, within reason."""
    return None if config.tasks.eval_size == "auto" else config.tasks.eval_size


def _key(config: RunConfig) -> int:
    """What decides which tasks are held out."""
    return config.seed if config.tasks.eval_seed is None else config.tasks.eval_seed


def check_given(config: RunConfig, given: Mapping[str, Any]) -> None:
    """Raise UsageError if an object is missing that the configuration says was given, or one is too many."""
    said = {
        "tasks": config.tasks.source,
        "eval_tasks": config.tasks.eval_source,
        "method": config.method.name,
        "reward": config.method.reward,
    }
    for key, value in given.items():
        if said[key] == GIVEN and value is None:
            raise UsageError(f"the {key} of this run came as a Python object; call assay.train(resume=..., {key}=...)")
        if value is not None and said[key] != GIVEN:
            raise UsageError(f"the {key} of this run stands in its config.toml; leave out {key}=... to continue it")
