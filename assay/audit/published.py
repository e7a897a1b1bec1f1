"""Judged responses that others have published, by name."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from assay.audit.labelled import Row, row_of
from assay.errors import UsageError, nearest
from assay.tasks.files.huggingface import placed


@functools.cache
def published() -> dict[str, dict[str, Any]]:
    """Return the entry of each set by its name."""
    return tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))


def published_rows(name: str, path: str | None = None, kind: str = "exact") -> list[Row]:
    """Return the rows of a set.

    Args:
        name: of :func:`published`.
        path: a file of it, in its own fields, or another place on the hub; its own there unless given.
        kind: the verifier that its tasks name.

    Raises:
        UsageError: no such set, it cannot be loaded, or a row lacks a field or has a label of another kind.
    """
    entry = _entry(name)
    fields, labels = entry["fields"], entry.get("labels", {})

    def read(row: Any) -> Any:
        said = row.get(fields["label"]) if isinstance(row, Mapping) else None
        return {**row, fields["label"]: labels[said]} if isinstance(said, str) and said in labels else row

    return [row_of(where, read(row), kind, fields) for where, row in raw_rows(name, path)]


def raw_rows(name: str, path: str | None = None) -> Iterator[tuple[str, Any]]:
    """Return the rows of a set as they are published, each with the place to name in an error; see above."""
    entry = _entry(name)
    return placed(path or entry["path"], entry["split"], entry.get("file"))


def _entry(name: str) -> dict[str, Any]:
    if name not in published():
        raise UsageError(f"no set of judged responses is called {name!r}{nearest(name, published())}")
    return published()[name]
