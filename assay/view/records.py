"""Evaluations in numbers, what was gained and lost between two, and records in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.errors import RunError
from assay.records.evaluation import Evaluation
from assay.records.evaluation_folder import EvaluationFolder, is_folder
from assay.records.sample import Sample, read_samples
from assay.statistics.calibration import bin_of, expected_calibration_error
from assay.statistics.intervals import mean_interval, paired_interval
from assay.view.league import league
from assay.view.places import LEAGUE, Missing, Place, read_json
from assay.view.query import excerpt

BINS = 10
LISTED = 200
"""Tasks gained, and lost, that are listed."""


def read(place: Place) -> Evaluation:
    """Return an evaluation as far as it is stored.

    Raises:
        Missing: it cannot be read.
    """
    try:
        if is_folder(place.path):
            folder = EvaluationFolder.open(place.path)
            return Evaluation(place.id, int(folder.about["step"]), tuple(folder.samples()))
        samples, label, step = read_samples(place.path)
        return Evaluation(label, step, tuple(samples))
    except RunError as error:
        raise Missing(str(error)) from None


def evaluation(place: Place) -> dict[str, Any]:
    """Return an evaluation in numbers, with how far its confidence can be believed where samples have one."""
    found = read(place)
    return {
        "id": place.id,
        "label": found.label,
        "step": found.step,
        "metrics": found.metrics(),
        "calibration": calibration(found.samples),
        "answers": _answers(found),
    }


def calibration(samples: tuple[Sample, ...]) -> dict[str, Any] | None:
    """Return accuracy by confidence in bins of equal width with intervals, and the expected calibration error.

    ``None`` where no judged sample has a confidence in [0, 1].
    """
    known = [(s.confidence, s.passed) for s in samples if s.confidence is not None and s.passed is not None]
    p, y = np.array([c for c, _ in known], float), np.array([r for _, r in known], float)
    if not len(p) or not np.isfinite(p).all() or p.min() < 0 or p.max() > 1:
        return None
    which = bin_of(p, BINS)
    bins = []
    for b in np.unique(which):
        inside = which == b
        accuracy = mean_interval(y[inside], bounds=(0, 1))
        bins.append(
            {
                "confidence": float(p[inside].mean()),
                "accuracy": accuracy.value,
                "low": accuracy.low,
                "high": accuracy.high,
                "samples": int(inside.sum()),
            }
        )
    return {"bins": bins, "error": expected_calibration_error(p, y, BINS), "samples": len(p)}


def _answers(found: Evaluation) -> list[dict[str, Any]]:
    """Return the tasks whose samples disagree most, with how often each answer was given."""
    rows: list[dict[str, Any]] = []
    for task, samples in found.by_task().items():
        given: dict[str, list[Sample]] = {}
        for s in samples:
            if s.answer is not None:
                given.setdefault(s.answer, []).append(s)
        if len(given) > 1:
            counts = sorted(given.items(), key=lambda item: (-len(item[1]), item[0]))
            listed = [{"answer": a[:200], "samples": len(g), "passed": g[0].passed} for a, g in counts[:6]]
            rows.append(
                {"task": task, "prompt": excerpt(samples[0].prompt), "answers": listed, "different": len(given)}
            )
    return sorted(rows, key=lambda row: -row["different"])[:LISTED]


def between(a: Place, b: Place) -> dict[str, Any]:
    """Return what was gained and lost from one evaluation to another, by task, with the interval of the difference.

    A task's rate is the share of its judged samples that are right; tasks without a judged sample on either side are
    left out.
    """
    found = [read(place) for place in (a, b)]
    rates = [_rates(evaluation) for evaluation in found]
    shared = [task for task in rates[0] if task in rates[1]]
    if not shared:
        raise Missing(f"{a.id} and {b.id} have no judged task in common")
    x, y = (np.array([r[task][0] for task in shared]) for r in rates)
    gain = paired_interval(x, y, bounds=(-1, 1))
    rows: list[dict[str, Any]] = [
        {"task": t, "before": float(p), "after": float(q), "prompt": rates[0][t][1]}
        for t, p, q in zip(shared, x, y, strict=True)
        if p != q
    ]
    rows.sort(key=lambda r: -abs(r["after"] - r["before"]))
    return {
        "a": a.id,
        "b": b.id,
        "before": float(x.mean()),
        "after": float(y.mean()),
        "difference": {"value": gain.value, "low": gain.low, "high": gain.high},
        "tasks": len(shared),
        "unchanged": len(shared) - len(rows),
        "counts": {"gained": int((y > x).sum()), "lost": int((y < x).sum())},
        "gained": [r for r in rows if r["after"] > r["before"]][:LISTED],
        "lost": [r for r in rows if r["after"] < r["before"]][:LISTED],
        "steps": [evaluation.step for evaluation in found],
    }


def _rates(found: Evaluation) -> dict[str, tuple[float, str]]:
    out = {}
    for task, samples in found.by_task().items():
        judged = [bool(s.passed) for s in samples if s.passed is not None]
        if judged:
            out[task] = (float(np.mean(judged)), excerpt(samples[0].prompt))
    return out


def record(place: Place) -> dict[str, Any]:
    """Return a record as it stands in its file: a comparison, an audit, a claim of the lab; or a setting's standing."""
    if place.kind not in ("comparison", "record"):
        raise Missing(f"{place.id} is no record")
    content = league(place.path) if place.what == LEAGUE else read_json(place.path)
    return {"id": place.id, "what": place.what, "content": content}
