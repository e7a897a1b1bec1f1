"""What a run has logged, read back line by line: damage is named, and everything else is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

STAGES = ("warmup", "rl")

Row = dict[str, Any]


def read_metrics(path: Path, cut: bool = False) -> tuple[list[Row], list[str]]:
    """Return the rows of ``metrics.jsonl``, and a phrase on each thing that is wrong with the file.

    Args:
        path: the file; one that is missing has no rows.
        cut: whether to name a last line without its end as well, which is what a killed process leaves; where the run
            goes on, its step is done again.
    """
    if not path.is_file():
        return [], []
    rows: list[Row] = []
    wrong: list[str] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        return [], [f"cannot be read: {error.strerror}"]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _row(line)
        if row is not None:
            rows.append(row)
        elif number < len(lines):
            wrong.append(f"line {number} is damaged")
        elif cut:
            wrong.append(f"line {number} is cut short")
    return rows, wrong


def gaps(rows: Iterable[Row], stage: str, last: int) -> str | None:
    """Say which steps from 1 to ``last`` of a stage have no row; ``None`` if all have one."""
    there = {row["step"] for row in rows if row["stage"] == stage}
    missing = [step for step in range(1, last + 1) if step not in there]
    return f"{stage} steps {_ranges(missing)} are missing" if missing else None


def joined(words: Sequence[str], most: int = 5) -> str:
    """The first ``most`` of some phrases, and how many more there are."""
    more = [f"and {len(words) - most} more"] if len(words) > most else []
    return "; ".join([*words[:most], *more])


def _row(line: bytes) -> Row | None:
    """A line as a row with a stage and a step of it, from 1; ``None`` for anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.get("stage") not in STAGES:
        return None
    step = row.get("step")
    return row if isinstance(step, int) and not isinstance(step, bool) and step >= 1 else None


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as ``1-3, 7``; at most five ranges."""
    out: list[list[int]] = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    words = [f"{a}-{b}" if a != b else str(a) for a, b in out[:5]]
    return ", ".join(words) + (", ..." if len(out) > 5 else "")
