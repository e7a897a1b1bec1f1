"""What a run wrote of how its policy judges the steps of solutions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAME = "judging.jsonl"


def looks(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a run's ``judging.jsonl`` by step, of a repeated step the last; a line cut short is none."""
    path, found = folder / NAME, {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            found[row["step"]] = row
    return [found[step] for step in sorted(found)]
