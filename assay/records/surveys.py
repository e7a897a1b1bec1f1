"""What a run found out of its whole data set before a step, piece by piece as it was looked at: ``surveys/``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""What was found of one task: plain data, the task's id under ``task``."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the tasks that were looked at.

    Attributes:
        tasks: their ids, in the order in which they were asked.
        rows: what was found of those that came back.
    """

    tasks: list[str]
    rows: list[Row]


def survey_file(run: Path, step: int) -> Path:
    """Return where a run keeps what it found before the step that follows ``step`` finished ones."""
    return run / "surveys" / f"step-{step:06d}.jsonl"


def read_survey(path: Path) -> list[Piece]:
    """Return the pieces of a survey that are whole, up to the first that is not; none where there is no file."""
    pieces: list[Piece] = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            found = json.loads(line)
            tasks, rows = list(found["tasks"]), list(found["rows"])
        except (ValueError, KeyError, TypeError):
            break
        if not all(isinstance(row, dict) and row.get("task") in tasks for row in rows):
            break
        pieces.append(Piece(tasks, rows))
    return pieces


def write_piece(path: Path, pieces: Sequence[Piece], piece: Piece) -> None:
    """Add a piece after the ``pieces`` that are there, dropping what a torn or other one left behind them."""
    path.parent.mkdir(exist_ok=True)
    kept = path.read_bytes().splitlines(keepends=True)[: len(pieces)] if path.is_file() else []
    line = json.dumps({"tasks": piece.tasks, "rows": piece.rows}) + "\n"
    with open(path, "r+b" if path.is_file() else "wb") as file:
        file.seek(sum(map(len, kept)))
        file.truncate()
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def surveys_after(run: Path, step: int) -> list[Path]:
    """Return the files of what was found after ``step`` finished steps."""
    files = (run / "surveys").glob("step-*.jsonl")
    return [f for f in files if (n := f.stem.removeprefix("step-")).isdecimal() and int(n) > step]


def plain(value: Any) -> Any:
    """Return ``value`` as it is read back: lists for tuples, and ``None`` for NaN, which JSON does not know."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value
