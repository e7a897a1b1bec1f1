"""What ``tasks.eval_source`` stands for: sources that nothing but held-out tasks come from, such as a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.recipes import DATA, file_source
from assay.registry import build, names
from assay.tasks.base import TaskSource
from assay.tasks.files.benchmark import benchmarks
from assay.tasks.mixture import labelled, labels_of
from assay.tasks.split import measured
from assay.types import Task

LABEL = "as"
"""Key of what a source is called among several."""


def specs(said: Any, source: Any) -> dict[str, Any]:
    """Return the parts that ``tasks.eval_source`` names, by label.

    A table without ``name`` changes options of ``tasks.source``, ``{split = "test"}``; so does the path of a file where
    that is a file too, otherwise fields are found by their usual names. The name of a benchmark stands for all of it.

    Args:
        said: one of these, or a list of them, of which tables may say what they are called, ``as = "harder"``.
        source: ``tasks.source``.

    Raises:
        UsageError: the list is empty; a table has no name, and there is nothing for it to change.
    """
    entries = said if isinstance(said, list) else [said]
    if not entries:
        raise UsageError("tasks.eval_source is an empty list; leave it out")
    found = [_spec(entry, source) for entry in entries]
    for i, spec in enumerate(found):
        if spec in found[:i]:
            raise UsageError(f"tasks.eval_source names {_label(spec)} twice, and its tasks would count twice")
    called = [e.get(LABEL) if isinstance(e, Mapping) else None for e in entries]
    return dict(zip(labels_of([str(c or _label(f)) for c, f in zip(called, found, strict=True)]), found, strict=True))


def eval_sources(said: Any, source: Any) -> dict[str, TaskSource]:
    """Return the sources themselves, see :func:`specs`.

    Raises:
        UsageError: one cannot be made; the line says which.
    """
    made = {}
    for label, spec in specs(said, source).items():
        try:
            made[label] = build("tasks", spec)
        except UsageError as error:
            raise UsageError(f"tasks.eval_source {label!r}: {error}") from None
    return made


def tasks_of(sources: Mapping[str, TaskSource], size: int | None, key: int) -> list[Task]:
    """Return what is measured of sources, see :func:`assay.tasks.split.measured`: of each at most ``size`` tasks.

    Of several sources tasks have the label before their id, and in ``meta["source"]``.

    Raises:
        UsageError: a source is empty, or none has so many.
    """
    found = {label: measured(source, size, key) for label, source in sources.items()}
    if size is not None and (most := max(map(len, found.values()))) < size:
        raise UsageError(f"eval_size {size} of a source of {most} tasks is too large")
    if len(found) == 1:
        return next(iter(found.values()))
    return [labelled(task, label) for label, tasks in found.items() for task in tasks]


def held_back(sources: Mapping[str, TaskSource], measured: Sequence[Task]) -> list[Task]:
    """Return the tasks that are not to be trained on: all of sized sources, of endless ones what is measured."""
    sized = [source[i] for source in sources.values() if source.size is not None for i in range(source.size)]
    return [*sized, *measured]


def _spec(entry: Any, source: Any) -> Any:
    if isinstance(entry, str):
        if Path(entry).suffix.lower() in DATA:
            alike = isinstance(source, Mapping) and source.get("name") == "file"
            return {**source, "path": entry} if alike else file_source(entry)
        if entry in benchmarks() and entry not in names("tasks"):
            return {"name": "benchmark", "which": entry}
        return entry
    options = {k: v for k, v in entry.items() if k != LABEL}
    if "name" in options:
        return options
    base = {"name": source} if isinstance(source, str) else source
    if not isinstance(base, Mapping):
        raise UsageError(f"tasks.eval_source: {dict(entry)} has no name, and tasks.source is no part it could change")
    return {**base, **options}


def _label(spec: Any) -> str:
    """What a source is called that does not say: a file's stem, a benchmark's name, a part's."""
    if isinstance(spec, str):
        return spec
    if "path" in spec and spec.get("name") == "file":
        return Path(str(spec["path"])).stem
    return str(spec.get("which") or spec["name"])
