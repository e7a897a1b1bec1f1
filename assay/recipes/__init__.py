"""The recipes that come with the package, each by its name, and what a file of tasks stands for as one."""

from __future__ import annotations

import itertools
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest

DATA = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz")
"""Suffixes of files of tasks."""
OWN: dict[str, dict[str, Any]] = {"rollout": {"max_tokens": 128}, "warmup": {"steps": 200, "target": 0.3, "batch": 32}}
"""For tasks of one's own and the built-in model, which knows nothing yet: it is shown their answers first."""


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with the package, sorted."""
    return sorted(p.name.removesuffix(".toml") for p in resources.files(__name__).iterdir() if p.name.endswith(".toml"))


def recipe_text(name: str) -> str:
    """Return a recipe's TOML.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in recipe_names():
        raise UsageError(f"no recipe {name}{nearest(name, recipe_names())}")
    return resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")


def about(name: str) -> str:
    """Return what a recipe says of itself, in a line: its first comment, up to commands indented there."""
    said = itertools.takewhile(re.compile(r"# ?\S").match, recipe_text(name).splitlines())
    return " ".join(line.lstrip("# ") for line in said)


def file_source(path: str) -> dict[str, Any]:
    """Return the source of the tasks in a file whose fields have usual names."""
    found = dict.fromkeys(("prompt", "reference", "solution", "kind"), "auto")
    return {"name": "file", "path": path, **found}


def recipe_data(recipe: str | Path) -> dict[str, Any] | None:
    """Return the sections of what is no TOML file of the user's: a recipe of the package, or a file of tasks.

    A file of the same name goes before a recipe of the package.
    """
    path, name = Path(recipe), str(recipe)
    if path.suffix.lower() in DATA:
        called = Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
        return {"tasks": {"source": file_source(name)}, "run": {"dir": f"runs/{called}"}}
    if path.is_file() or name not in recipe_names():
        return None
    return tomllib.loads(recipe_text(name))
