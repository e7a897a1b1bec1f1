"""A setting of the league: where its methods stand, their learning curves, and who has too few seeds yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from assay.compare.standing import BASELINE, LEAST, Stand, counted, standing
from assay.statistics.intervals import mean_interval
from assay.view.places import Missing, is_league, read_json

POINTS = 40
"""Of a learning curve, at most."""


def league(folder: Path) -> dict[str, Any]:
    """Return a setting from its records, whatever of them is there already.

    Args:
        folder: with a record for each method. Those of another version of the setting than the baseline's stand aside.

    Raises:
        Missing: there is none (any more), or one cannot be read.
    """
    found = {str(r["label"]): r for r in map(read_json, sorted(filter(is_league, folder.glob("*.json"))))}
    if not found:
        raise Missing(f"{folder.name} has no record of the league (any more)")
    base = found.get(BASELINE)
    same = {k: r for k, r in found.items() if base is not None and r["fingerprint"] == base["fingerprint"]}
    measure = (base or next(iter(found.values()))).get("measure", "area")
    stands = standing(same, measure) if same else []
    there = {stand.label for stand in stands}
    return {
        "setting": next(iter(found.values()))["setting"],
        "measure": measure,
        "baseline": BASELINE,
        "least": LEAST,
        "methods": [_row(stand) for stand in stands],
        "curves": {stand.label: _curve(stand.record) for stand in stands},
        "waiting": [
            {"label": label, "seeds": len(counted(record)), "other": bool(same) and label not in same}
            for label, record in found.items()
            if label not in there
        ],
    }


def _row(stand: Stand) -> dict[str, Any]:
    effect, record = stand.effect, stand.record
    places = {f"{e.get('commit') or 'release'}, {e['processors']} cores" for e in record["environments"]}
    return {
        "label": stand.label,
        "effect": None if effect is None else {"value": effect.value, "low": effect.low, "high": effect.high},
        "p": stand.p,
        "flip": stand.flip,
        "seeds": len(counted(record)) if effect is None else effect.seeds,
        "fell": stand.fell,
        **{name: getattr(stand, name) for name in ("measure", "final", "wide", "tokens", "cost", "beside")},
        "tuned": ", ".join(f"{k.removeprefix('train.')} {v:g}" for k, v in record["chosen"].items()),
        "unsettled": list(record["unsettled"]),
        "where": sorted(places),
    }


def _curve(record: Mapping[str, Any]) -> list[list[float]]:
    """Return held-out pass@1 over responses sampled, the mean over seeds with its interval: x, mean, low, high."""
    curves = [run["curve"] for run in counted(record).values() if run.get("curve")]
    if not curves:
        return []
    at = np.unique([point["rollouts"] for curve in curves for point in curve])
    at = at[np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS)).round().astype(int))]
    scores = np.array([np.interp(at, [p["rollouts"] for p in c], [p["pass@1"] for p in c]) for c in curves])
    means = [mean_interval(column, bounds=(0, 1)) for column in scores.T]
    return [[float(x), m.value, m.low, m.high] for x, m in zip(at, means, strict=True)]
