"""What there is to train on, as plain data for the command line."""

from __future__ import annotations

import inspect
from typing import Any

from assay.errors import UsageError
from assay.registry import build, find, names
from assay.types import Task


def list_sources() -> list[dict[str, Any]]:
    """Return one row per source: ``name``, ``doc`` (a line) and ``options`` (their names)."""
    return [
        {"name": name, "doc": _doc(name).partition("\n")[0], "options": [o["name"] for o in _options(name)]}
        for name in names("tasks")
    ]


def show(name: str) -> dict[str, Any]:
    """Return a source's ``name``, ``doc``, ``options`` (name, type, default, required) and ``choices`` by option.

    ``gym`` lists its data sets as ``choices``; ``gym:chain_sum`` is one of them, with its own options.

    Raises:
        UsageError: unknown source or data set.
    """
    name, _, dataset = name.partition(":")
    if dataset and name != "gym":
        raise UsageError(f"only 'gym' has data sets to name after a colon, not {name!r}")
    find("tasks", name)
    if dataset:
        return _show_dataset(dataset)
    choices: dict[str, list[str]] = {}
    if name == "gym":
        from assay.tasks.gym import dataset_names

        choices["dataset"] = dataset_names()
    return {"name": name, "doc": _doc(name), "options": _options(name), "choices": choices}


def sample(spec: Any, n: int = 3, start: int = 0) -> list[dict[str, Any]]:
    """Return tasks ``start`` to ``start + n`` of a source as plain data; ``gym:chain_sum`` is short for the table.

    Raises:
        UsageError: the source cannot be made, or has no tasks there.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, dict) and str(spec.get("name")).startswith("gym:"):
        spec = {**spec, "name": "gym", "dataset": spec["name"].removeprefix("gym:")}
    source = build("tasks", spec)
    if n < 1 or start < 0 or (source.size is not None and start >= source.size):
        of = "an endless source" if source.size is None else f"a source of {source.size} tasks"
        raise UsageError(f"no {n} tasks from number {start} in {of}")
    stop = start + n if source.size is None else min(start + n, source.size)
    return [_row(source[i]) for i in range(start, stop)]


def _row(task: Task) -> dict[str, Any]:
    prompt = task.prompt if isinstance(task.prompt, str) else [dict(m) for m in task.prompt]
    return {
        "id": task.id,
        "kind": task.kind,
        "prompt": prompt,
        "reference": task.reference,
        "solution": task.solution,
        "hints": list(task.hints),
        "meta": dict(task.meta),
    }


def _doc(name: str) -> str:
    return inspect.getdoc(find("tasks", name)) or ""


def _options(name: str) -> list[dict[str, Any]]:
    rows = []
    for p in inspect.signature(find("tasks", name)).parameters.values():
        required = p.default is p.empty
        # A dataclass shows a default factory as an opaque object; what it makes is what matters.
        factory = type(p.default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
        default = None if required else {} if factory else p.default
        rows.append({"name": p.name, "type": str(p.annotation), "default": default, "required": required})
    return rows


def _show_dataset(name: str) -> dict[str, Any]:
    import dataclasses

    from assay.tasks.gym import check_config

    check_config(name, {})
    from reasoning_gym.factory import DATASETS

    made, config = DATASETS[name]
    options = []
    for f in dataclasses.fields(config):
        if f.name in ("seed", "size"):
            continue
        default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        required = default is dataclasses.MISSING
        kind = f.type if isinstance(f.type, str) else getattr(f.type, "__name__", str(f.type))
        options.append({"name": f.name, "type": kind, "default": None if required else default, "required": required})
    return {"name": f"gym:{name}", "doc": inspect.getdoc(made) or "", "options": options, "choices": {}}
