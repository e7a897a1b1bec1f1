"""Responses whose correctness is known: rows of a file, or generated cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.audit.case import Case
from assay.errors import UsageError, nearest
from assay.records.rows import read_rows
from assay.types import Task

REQUIRED = ("reference", "response", "label")
OPTIONAL = ("question", "category", "id", "kind")
UNSORTED = "all"
"""Category of rows that have none."""

_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0", "right", "correct"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0", "wrong", "incorrect"), False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A response to a task and whether it is right.

    Attributes:
        task: question, reference and kind.
        response: what was answered.
        label: whether it is right.
        category: what rates are broken down by.
        pattern: the spelling or the near miss that the response is an instance of, where known.
        wrong: an answer to the task that is wrong for certain, where known.
        counted: whether it counts in the error rates; if not, it is reported as a number of its own.
    """

    task: Task
    response: str
    label: bool
    category: str = UNSORTED
    pattern: str = ""
    wrong: str = ""
    counted: bool = True

    @classmethod
    def of(cls, case: Case, kind: str | None = None) -> Row:
        """Return a generated case as a row for a verifier of ``kind`` (by default the case's own)."""
        wrong = "" if case.label else case.answer
        return cls(case.task(kind), case.response, case.label, case.family, case.kind, wrong, case.counted)


def read_labelled(path: Path, kind: str = "exact", fields: Mapping[str, str] | None = None) -> list[Row]:
    """Read the rows of a JSONL, JSON, CSV, TSV or Parquet file.

    Each row has ``reference``, ``response`` and ``label``, and may have ``question``, ``category``, ``id`` and
    ``kind``. A label is true or false, 1 or 0, yes or no, right or wrong, correct or incorrect, also in brackets. Ids
    need not be unique: rows of one task share theirs; without one, rows of equal question and reference are one task.

    Args:
        path: the file.
        kind: the verifier named by tasks of rows without a ``kind``.
        fields: other names of these fields in the file, with dots into nested ones, e.g. ``{"label": "human.ok"}``.

    Raises:
        UsageError: no such file, no rows, an unknown field in ``fields``, or the first row that lacks a field or has a
            label that is neither true nor false, with its line.
    """
    fields = dict(fields or {})
    for role in fields:
        if role not in (*REQUIRED, *OPTIONAL):
            raise UsageError(f"there is no field {role!r} to map{nearest(role, (*REQUIRED, *OPTIONAL))}")
    rows = [row_of(where, row, kind, fields) for where, row in read_rows(path)]
    if not rows:
        raise UsageError(f"{path} has no rows")
    return rows


def parse_fields(text: str) -> dict[str, str]:
    """Read ``label=correct,response=model.output``; raise UsageError for anything of another form."""
    fields: dict[str, str] = {}
    for pair in filter(None, (p.strip() for p in text.split(","))):
        role, equals, name = (s.strip() for s in pair.partition("="))
        if not (role and equals and name):
            raise UsageError(f"fields {pair!r} is not of the form label=correct,response=output")
        fields[role] = name
    return fields


def digest(rows: Iterable[Row]) -> str:
    """SHA-256 of what the rows say, the same whatever file format they came from."""
    found = hashlib.sha256()
    for row in rows:
        content = [row.task.question, row.task.reference, row.task.kind, row.response, row.label, row.category]
        found.update(json.dumps(content, sort_keys=True, default=str).encode() + b"\n")
    return found.hexdigest()


def tasks_of(rows: Sequence[Row]) -> list[Row]:
    """The first row of each distinct task, one with a certainly wrong answer where there is one."""
    found: dict[str, Row] = {}
    for row in rows:
        key = json.dumps([row.task.question, row.task.reference, row.task.kind], sort_keys=True, default=str)
        if key not in found or (row.wrong and not found[key].wrong):
            found[key] = row
    return list(found.values())


def row_of(where: str, row: Any, kind: str, fields: Mapping[str, str]) -> Row:
    """Return a row that was read at ``where``; see :func:`read_labelled`."""
    if not isinstance(row, Mapping):
        raise UsageError(f"{where} is a {type(row).__name__}, not a table of fields")
    values = {role: _value(where, row, role, fields.get(role, role)) for role in REQUIRED}
    for role in OPTIONAL:
        if role in fields or role in row:
            values[role] = _value(where, row, role, fields.get(role, role))
    response = values["response"]
    if isinstance(response, int | float) and not isinstance(response, bool):
        response = str(response)
    if not isinstance(response, str):
        raise UsageError(f"{where}: the response is {_shown(response)}, not text")
    question, category, id = (values.get(role) for role in ("question", "category", "id"))
    task = Task(
        id=where if id is None else str(id),
        prompt="" if question is None else str(question),
        reference=values["reference"],
        kind=str(values.get("kind") or kind),
    )
    return Row(task, response, _label(where, values["label"]), UNSORTED if category in (None, "") else str(category))


def _label(where: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    label = _WORDS.get(str(value).strip().strip("[]").lower())
    if label is None:
        raise UsageError(f"{where}: the label is {_shown(value)}, neither true nor false")
    return label


def _value(where: str, row: Mapping[str, Any], role: str, name: str) -> Any:
    value: Any = row
    for key in [name] if name in row else name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            close = nearest(name, map(str, row))
            hint = "" if close.startswith("; known") else close
            present = ", ".join(map(str, row)) or "none"
            raise UsageError(
                f"{where} has no field {name!r} for the {role} (fields present: {present}){hint};"
                f" name it with --fields {role}=FIELD"
            )
        value = value[key]
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
