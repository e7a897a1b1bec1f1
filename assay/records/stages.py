"""The stages of a run that has any: what each is to change, and which steps it took."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CHANGES = ("tasks", "method", "rollout", "train", "until", "best")


def stages(run: Path, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what is known of each stage, in order; nothing for a run that has none, or whose recipe cannot be read.

    Args:
        run: its folder.
        rows: of its metrics.

    Returns:
        Tables with ``name``; ``steps``, at most; ``first`` and ``last`` of those it took so far, from 1, ``None`` if
        there are none; and ``changes`` to the recipe, as a line.
    """
    try:
        said = tomllib.loads((run / "config.toml").read_text(encoding="utf-8", errors="replace")).get("stages", [])
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(said, list) or not all(isinstance(stage, dict) for stage in said):
        return []
    taken: dict[int, list[int]] = {}
    for row in rows:
        if row.get("stage", "rl") == "rl" and isinstance(row.get("stage_number"), int):
            taken.setdefault(row["stage_number"], []).append(row["step"])
    return [
        {
            "name": stage.get("name"),
            "steps": stage.get("steps"),
            "first": min(taken[number]) if number in taken else None,
            "last": max(taken[number]) if number in taken else None,
            "changes": "; ".join(_flat(key, stage[key]) for key in CHANGES if stage.get(key)),
        }
        for number, stage in enumerate(said, 1)
    ]


def _flat(key: str, value: Any) -> str:
    """A table in a line: ``rollout.group = 64, rollout.max_tokens = 32``."""
    if isinstance(value, dict):
        return ", ".join(_flat(f"{key}.{k}", v) for k, v in value.items())
    return f"{key} = {value}"
