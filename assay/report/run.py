"""A run folder as the report reads it: whatever is there, and a note on whatever is not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import RunError, UsageError
from assay.evaluate import Evaluation
from assay.records.history import STAGES, gaps, joined, read_metrics
from assay.records.sign import TITLES

if TYPE_CHECKING:
    import pyarrow as pa

RECENT_STEPS = 5
"""Training steps at the end of a run whose rollouts are looked at."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One stored training sample; ``terms`` are the ingredients of its reward by name."""

    step: int
    task_id: str
    prompt: str
    response: str
    score: float | None
    passed: bool | None
    feedback: str
    reward: float | None
    advantage: float | None
    length: int | None
    stop: str
    terms: dict[str, float]


COLUMNS = frozenset(Rollout.__dataclass_fields__) - {"terms"}


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign that the reward was gamed: what it is called, when it appeared, its numbers, rollouts that show it."""

    title: str
    step: int
    since: int
    text: str
    numbers: dict[str, float]
    examples: list[Rollout]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run folder holds.

    Attributes:
        path: the folder.
        config: text of ``config.toml``, or ``None``.
        environment: ``environment.json``, or empty.
        metrics: rows of ``metrics.jsonl`` per stage, one per step, sorted; of a step repeated after a resume, the last.
        evaluations: sorted by step, then as they happen: initial, before, at steps, after.
        rollouts: samples of the last :data:`RECENT_STEPS` steps.
        signs: that the reward was gamed, in the order they appeared; ``None`` if nobody looked.
        notes: what is missing or could not be read, one sentence each.
    """

    path: Path
    config: str | None
    environment: dict[str, Any]
    metrics: dict[str, list[dict[str, Any]]]
    evaluations: list[Evaluation]
    rollouts: list[Rollout]
    signs: list[Sign] | None
    notes: list[str]

    def evaluation(self, label: str) -> Evaluation | None:
        return next((e for e in self.evaluations if e.label == label), None)

    def column(self, stage: str, key: str) -> tuple[list[float], list[float]]:
        """Steps and values of a metric, NaN where a step lacks it; both empty if no step has it."""
        rows = self.metrics[stage]
        values = [as_float(row.get(key)) for row in rows]
        if not any(math.isfinite(v) for v in values):
            return [], []
        return [float(row["step"]) for row in rows], values


def read_run(path: Path) -> Run:
    """Read a run folder; raise UsageError if it is none."""
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; give the folder that `assay train` wrote")
    if not any((path / name).exists() for name in ("config.toml", "metrics.jsonl", "evals", "rollouts")):
        raise UsageError(f"{path} is not a run: it has no config.toml, metrics.jsonl, evals/ or rollouts/")
    notes: list[str] = []
    return Run(
        path=path,
        config=_text(path / "config.toml", notes),
        environment=_environment(path / "environment.json", notes),
        metrics=_metrics(path / "metrics.jsonl", notes),
        evaluations=_evaluations(path / "evals", notes),
        rollouts=_rollouts(path / "rollouts", notes),
        signs=_signs(path / "signs.json", notes),
        notes=notes,
    )


def as_float(value: Any) -> float:
    """A JSON value as a number, NaN if it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _text(path: Path, notes: list[str]) -> str | None:
    if not path.is_file():
        notes.append(f"{path.name} is missing.")
        return None
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        notes.append(f"{path.name} cannot be read: {error.strerror}.")
        return None


def _environment(path: Path, notes: list[str]) -> dict[str, Any]:
    text = _text(path, notes)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        notes.append(f"{path.name} is not JSON: {error}.")
        return {}
    return value if isinstance(value, dict) else {"environment": value}


def _metrics(path: Path, notes: list[str]) -> dict[str, list[dict[str, Any]]]:
    if not path.is_file():
        notes.append(f"{path.name} is missing.")
    rows, wrong = read_metrics(path, cut=True)
    stages = {stage: {row["step"]: row for row in rows if row["stage"] == stage} for stage in STAGES}
    wrong += [lost for stage in STAGES if (lost := gaps(rows, stage, max(stages[stage], default=0)))]
    if wrong:
        notes.append(f"{path.name}: {joined(wrong)}; the curves go on without.")
    return {stage: [steps[step] for step in sorted(steps)] for stage, steps in stages.items()}


def upto(run: Run, step: int) -> Run:
    """Return the run as it was after some steps of RL."""
    metrics = {**run.metrics, "rl": [row for row in run.metrics.get("rl", []) if row["step"] <= step]}
    return replace(
        run,
        metrics=metrics,
        evaluations=[e for e in run.evaluations if e.step <= step],
        rollouts=[r for r in run.rollouts if r.step <= step],
        signs=None if run.signs is None else [s for s in run.signs if s.step <= step],
    )


def _evaluations(folder: Path, notes: list[str]) -> list[Evaluation]:
    found = []
    for file in sorted(folder.glob("*.parquet")):
        try:
            found.append(Evaluation.from_parquet(file))
        except RunError as error:
            notes.append(f"{error}.")
    if not found:
        notes.append("There are no evaluations.")
    order = {"initial": 0, "before": 1, "after": 3}
    return sorted(found, key=lambda e: (e.step, order.get(e.label, 2), e.label))


def _rollouts(folder: Path, notes: list[str]) -> list[Rollout]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    # Files are named after their steps, so the newest come last and a long run need not be read from the start.
    for file in sorted(folder.glob("*.parquet"), key=_natural, reverse=True):
        try:
            stored = pq.ParquetFile(file, page_checksum_verification=True)
            names = [n for n in stored.schema_arrow.names if n in COLUMNS or n.startswith("reward/")]
            table = stored.read(names)
            found = table.cast(_schema(table.column_names)).to_pylist()
            if any(row["step"] is None for row in found if "step" in row):
                raise ValueError("a row without a step")
        except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: text that is no UTF-8
            notes.append(f"{file.parent.name}/{file.name} could not be read: {str(error).splitlines()[0]}.")
            continue
        if missing := sorted(COLUMNS - set(table.column_names)):
            notes.append(f"{file.parent.name}/{file.name} lacks {', '.join(missing)}.")
            continue
        rows += found
        if len({row["step"] for row in rows}) >= RECENT_STEPS:
            break
    if not rows:
        notes.append("There are no stored rollouts.")
    recent = sorted({row["step"] for row in rows})[-RECENT_STEPS:]
    return [_rollout(row) for row in rows if row["step"] in recent]


def _schema(names: Sequence[str]) -> pa.Schema:
    """Types of the columns of stored rollouts; a file from elsewhere may hold others."""
    import pyarrow as pa

    kinds = {"step": pa.int64(), "length": pa.int64(), "passed": pa.bool_()}
    kinds |= dict.fromkeys(("score", "reward", "advantage"), pa.float64())
    return pa.schema([(n, kinds.get(n, pa.float64() if n.startswith("reward/") else pa.string())) for n in names])


def _rollout(row: dict[str, Any]) -> Rollout:
    terms = {k.removeprefix("reward/"): as_float(v) for k, v in row.items() if k.startswith("reward/")}
    return Rollout(**{name: row[name] for name in COLUMNS}, terms=terms)


def _signs(path: Path, notes: list[str]) -> list[Sign] | None:
    if not path.is_file():
        return None
    try:
        return [
            Sign(
                TITLES[s["kind"]],
                int(s["step"]),
                int(s["since"]),
                str(s["text"]),
                {str(name): as_float(value) for name, value in s["numbers"].items()},
                [_rollout(row) for row in s["examples"]],
            )
            for s in json.loads(path.read_text(encoding="utf-8"))
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        notes.append(f"{path.name} could not be read: {type(error).__name__} {error}.")
        return None


def _natural(path: Path) -> list[Any]:
    """Sort key in which step-9 comes before step-10."""
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", path.name)]
