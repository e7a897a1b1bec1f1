"""A group and a sample, whole: texts, verdict's parts, turns, tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assay.view.places import Missing
from assay.view.query import Query, Wrong, finite
from assay.view.query import export as rows_of
from assay.view.table import Table

LARGEST_GROUP = 256
TOKEN = "token/"
"""What the names of columns with a value for each token begin with."""


def columns(table: Table) -> dict[str, Any]:
    """Return the table's columns by kind, what could not be read, and how many files are still to be read."""
    return {
        "columns": table.columns,
        "terms": [c.removeprefix("reward/") for c in table.columns if c.startswith("reward/")],
        "notes": list(table.notes.values()),
        "loading": table.waiting,
    }


def key(text: str) -> tuple[str, int]:
    """Read ``FILE:ROW``."""
    file, _, row = text.rpartition(":")
    return file, _whole("row", row)


def group(table: Table, step: str, task: str, number: str | None) -> dict[str, Any]:
    """Return all responses to a prompt at a step, whole.

    Args:
        table: of the source.
        step, task: which prompt.
        number: of its group, where a step may ask a task twice.

    Raises:
        Missing: there is none.
    """
    at = float(_whole("step", step))
    exact = {"task_id": [task]}
    if number:
        exact["group"] = [str(_whole("group", number))]
    rows = list(rows_of(table, Query(exact=exact, low={"step": at}, high={"step": at}, sort="row"), LARGEST_GROUP))
    if not rows:
        table.wait()
        rows = list(rows_of(table, Query(exact=exact, low={"step": at}, high={"step": at}, sort="row"), LARGEST_GROUP))
    if not rows:
        raise Missing(f"step {step} has no samples of task {task!r}")
    by_file: dict[str, list[int]] = {}
    for row in rows:
        by_file.setdefault(row["file"], []).append(row["row"])
    wide = {(f, r): w for f, rs in by_file.items() for r, w in zip(rs, table.wide(f, rs), strict=False)}
    return {"rows": [_whole_row(row, wide.get((row["file"], row["row"]), {})) for row in rows], "step": int(at)}


def sample(table: Table, file: str, row: str) -> dict[str, Any]:
    """Return one sample with its turns and, where they are stored, its tokens.

    Raises:
        Missing: there is none.
    """
    number = _whole("row", row)
    if file not in table.read:
        table.wait()
    found = table.wide(file, [number])
    if not found:
        raise Missing(f"{file} has no row {row} (any more)")
    wide = found[0]
    tokens = {name.removeprefix(TOKEN): values for name, values in wide.items() if name.startswith(TOKEN)}
    about = {k: v for k, v in wide.items() if not k.startswith(TOKEN)} | {"file": file, "row": number}
    return finite({**_whole_row(about, wide), "tokens": tokens if tokens.get("text") else None})


def _whole_row(row: Mapping[str, Any], wide: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(row)
    for name in ("turns", "parts", "meta"):
        if isinstance(wide.get(name), str):
            out[name] = _parsed(wide[name])
    return out


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # what an environment noted is shown as it stands
        return text


def _whole(name: str, value: str) -> int:
    if not value.isascii() or not value.isdecimal() or len(value) > 15:
        raise Wrong(f"{name}={value!r} is no whole number")
    return int(value)
