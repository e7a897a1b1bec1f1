"""Methods that are named: one of a table, a standard method, a paper, or what a TOML file holds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError

OWN = "recipe"
"""The method of the recipe itself."""


def named(name: str, own: Mapping[str, Any], table: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return a method's label and its ``[method]`` table.

    Args:
        name: a label of ``table``; ``recipe`` for ``own``; the file of :func:`in_file`, called by its name without
            ``.toml``; or what ``method.name`` may be.
        own: the recipe's own ``[method]``.
        table: methods by label, as in ``[compare.methods]``; a text there is a name too.

    Raises:
        UsageError: the file has none.
    """
    if name in table:
        found = table[name]
        return name, named(found, own, {})[1] if isinstance(found, str) else found
    if name == OWN:
        return name, own
    return (Path(name).stem, in_file(Path(name))) if name.endswith(".toml") else (name, {"name": name})


def in_file(path: Path) -> Mapping[str, Any]:
    """Return the table ``[method]`` of a TOML file.

    Raises:
        UsageError: it cannot be read, or has no such table.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}") from None
    found = data.get("method")
    if not isinstance(found, Mapping):
        raise UsageError(f"{path} has no table [method]; write what a recipe has there")
    return found
