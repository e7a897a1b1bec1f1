"""Runs: what there is of them, what they logged, what their evaluations found."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.records.evaluation import Evaluation, stored
from assay.records.history import read_metrics
from assay.records.run_folder import LOG
from assay.records.stages import stages
from assay.view.places import Place, Places

POINTS = 400
"""Points of a curve at most: of more, equally many steps are averaged into each."""
TAIL = 1 << 16
"""Of the end of a log: bytes in which its last line is looked for, characters that are shown."""
PARTS = ("objective", "credit", "reward", "select", "rollout")
"""Of a method, those that a run is called by."""


def home(places: Places) -> dict[str, Any]:
    """Return what there is, runs with how far they are."""
    found = places.all()
    inner = {part for place in found.values() for part in place.parts}
    return {
        "runs": [_head(p) for p in found.values() if p.kind == "run"],
        "evaluations": [{"id": p.id, "in_run": p.id in inner} for p in found.values() if p.kind == "evaluation"],
        "records": [{"id": p.id, "what": p.what} for p in found.values() if p.kind in ("comparison", "record")],
        "roots": [str(root) for root in places.roots],
    }


def run(place: Place, places: Places) -> dict[str, Any]:
    """Return what a run is, its evaluations with intervals, and the signs that its reward was gamed."""
    config = _text(place.path / "config.toml")
    evaluations = [e for id in place.parts if (e := _evaluated(id, places.all()[id].path))]
    evaluations.sort(key=lambda e: (e["step"], {"initial": 0, "before": 1, "after": 3}.get(e["label"], 2)))
    return {
        **_head(place),
        "config": config,
        "stages": stages(place.path, read_metrics(place.path / "metrics.jsonl")[0]),
        "evaluations": evaluations,
        "log": _text(place.path / LOG)[-TAIL:],
        "signs": _json(place.path / "signs.json", []),
        "environment": _json(place.path / "environment.json", {}),
        "report": (place.path / "report.html").is_file(),
    }


def metrics(runs: Sequence[Place]) -> dict[str, Any]:
    """Return the curves of some runs by metric: ``{name: {run: [[step, value], ...]}}``, of the RL stage."""
    series: dict[str, dict[str, list[list[float]]]] = {}
    notes = []
    for place in runs:
        rows, wrong = read_metrics(place.path / "metrics.jsonl")
        notes += [f"{place.id}: {phrase}" for phrase in wrong]
        steps = {row["step"]: row for row in rows if row["stage"] == "rl"}
        names = dict.fromkeys(name for row in steps.values() for name in row if name not in ("stage", "step"))
        for name in names:
            points = [[float(s), float(row[name])] for s, row in sorted(steps.items()) if _is_number(row.get(name))]
            if points:
                series.setdefault(name, {})[place.id] = thinned(points)
    evaluations = {
        place.id: [e for part in place.parts if (e := _evaluated(part, _part(place, part)))] for place in runs
    }
    for found in evaluations.values():
        found.sort(key=lambda e: e["step"])
    return {"series": series, "evaluations": evaluations, "notes": notes}


def thinned(points: list[list[float]]) -> list[list[float]]:
    """Return at most :data:`POINTS` points, means of as many neighbours each."""
    width = -(-len(points) // POINTS)
    if width <= 1:
        return points
    parts = [points[i : i + width] for i in range(0, len(points), width)]
    return [[part[-1][0], sum(y for _, y in part) / len(part)] for part in parts]


def _part(place: Place, id: str) -> Path:
    return place.path / "evals" / f"{id.rpartition('/')[2]}.parquet"


def _head(place: Place) -> dict[str, Any]:
    log = place.path / "metrics.jsonl"
    last = _last(log)
    config = _parsed(_text(place.path / "config.toml"))
    # Other programs have files of that name as well, with whatever in them.
    sections = (config.get(name) for name in ("train", "method", "model", "tasks"))
    train, method, model, tasks = (section if isinstance(section, dict) else {} for section in sections)
    return {
        "id": place.id,
        "step": last.get("step") if last.get("stage") == "rl" else 0,
        "steps": train.get("steps"),
        "stage": last.get("stage"),
        "seed": config.get("seed"),
        "method": _method(method),
        "model": model.get("source"),
        "tasks": _name(tasks.get("source")),
        "reward": last.get("reward/mean"),
        "pass_rate": last.get("pass_rate"),
        "seconds": last.get("time/elapsed", last.get("time/total")),
        "updated": log.stat().st_mtime if log.is_file() else None,
        "measured": _measured(place),
        "evaluations": list(place.parts),
        "rollouts": (place.path / "rollouts").is_dir(),
    }


def _method(method: dict[str, Any]) -> str:
    """Return what a method is called: by its own objective in place of the GRPO it is built on, by its other parts."""
    own = {key: str(_name(method[key])) for key in PARTS if key in method}
    name = method.get("name") or "grpo"
    first = own.pop("objective", name) if name == "grpo" else name
    return ", ".join([first, *(f"{key} {part}" for key, part in own.items())])


def _measured(place: Place) -> dict[str, Any] | None:
    """Return what a run's latest evaluation found: its label, its step and its metrics."""
    when = {}
    for part in place.parts:
        with contextlib.suppress(OSError):  # removed since
            when[part] = _part(place, part).stat().st_mtime_ns
    last = max(when, key=lambda part: when[part], default=None)
    return None if last is None else _evaluated(last, _part(place, last))


def _name(part: Any) -> Any:
    return part.get("name") if isinstance(part, dict) else part


def _last(log: Path) -> dict[str, Any]:
    """Return the last whole line of a log without reading all of it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return row
    return {}


def _evaluated(id: str, path: Path) -> dict[str, Any] | None:
    try:
        return {"id": id, **_numbers(str(path), path.stat().st_mtime_ns)}
    except (OSError, RunError):
        return None


@functools.lru_cache(maxsize=512)
def _numbers(path: str, _changed: int) -> dict[str, Any]:
    found: Evaluation | None = stored(path)
    assert found is not None
    return {"label": found.label, "step": found.step, "metrics": found.metrics()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return default


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
