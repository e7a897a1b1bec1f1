"""What a comparison's runs say together, as JSON can hold it; it follows from the runs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.compare.statistics import BOUNDS, LEVEL, Decision, decide
from assay.errors import RunError
from assay.statistics.aggregate import interval
from assay.statistics.profiles import profile

SCHEMA = "assay.compare/1"
THRESHOLDS = [i / 100 for i in range(101)]
"""Scores at which the performance profile is given."""
RESAMPLES = 2000

Scores = NDArray[np.float64]
Run = Mapping[str, Any]


def judged(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of runs with all that follows from them.

    A seed counts for a method if its runs on all tasks finished. Two methods are compared on the seeds that count for
    every method, so that all comparisons are of the same seeds.

    Args:
        record: ``plan`` and ``runs``, as :func:`assay.compare.run.compare` makes them.

    Raises:
        RunError: fewer than two methods, or fewer than two seeds that count for all of them.
    """
    plan, runs = record["plan"], record["runs"]
    methods, tasks, measure = list(plan["methods"]), list(plan["tasks"]), plan["measure"]
    done = {(r["method"], r["task"], r["seed"]): r for r in runs if r["status"] == "finished"}
    counted = {m: [s for s in plan["seeds"] if all((m, t, s) in done for t in tasks)] for m in methods}
    able = [m for m in methods if len(counted[m]) > 1]
    shared = [s for s in plan["seeds"] if all(s in counted[m] for m in able)]
    if len(able) < 2 or len(shared) < 2:
        errors = "; ".join(dict.fromkeys(r["error"] for r in runs if r["status"] != "finished"))
        raise RunError(f"too few runs finished to compare anything: {errors}")

    def scores(method: str, value: Any) -> Scores:
        return np.array([[value(done[method, t, s]) for t in tasks] for s in shared], dtype=np.float64)

    final = {m: scores(m, lambda r: r[measure]) for m in able}
    fewest = min(done[m, t, s]["judged"] for m in able for t in tasks for s in shared)
    decision = decide(final, step=1 / (fewest * len(tasks)))
    spent = {m: [done[m, t, s] for t in tasks for s in shared] for m in able}
    return {
        **record,
        "seeds": shared,
        "left_out": [m for m in methods if m not in able],
        "methods": {
            m: {
                "iqm": asdict(decision.iqm[m]),
                "mean": float(final[m].mean()),
                "scores": final[m].tolist(),
                **{unit: [min(r[unit] for r in spent[m]), max(r[unit] for r in spent[m])] for unit in UNITS},
                "seconds": float(np.mean([r["seconds"] for r in spent[m]])),
                "abstained": float(np.mean([r["abstained"] for r in spent[m]])),
            }
            for m in able
        },
        "pairs": [asdict(p) for p in decision.pairs],
        "winner": decision.winner,
        "verdict": words(decision),
        "curves": {unit: _curves(plan, unit, spent, scores, 1 / fewest) for unit in ("rollouts", "tokens")},
        "profile": _profile(final),
        "pass_at": _pass_at(spent, able, scores, fewest),
    }


UNITS = ("rollouts", "tokens", "steps")


def words(decision: Decision) -> list[str]:
    """The decision in sentences: the winner or that there is none, then what would tell pairs apart that are not."""
    if decision.winner is not None:
        out = [f"{decision.winner} is better than every other method."]
    else:
        out = ["No winner: the runs do not tell the best method apart from every other one."]
    for pair in decision.pairs:
        if pair.verdict != "not told apart":
            continue
        ahead, behind = (pair.a, pair.b) if pair.difference.value >= 0 else (pair.b, pair.a)
        seen = f"{ahead} and {behind} are not told apart ({100 * abs(pair.difference.value):.1f} points seen)"
        if pair.adjusted < LEVEL:
            seen = f"{ahead} is ahead of {behind} seed by seed, but not by the interquartile mean"
        if pair.more_seeds is None:
            out.append(f"{seen}: more than 1,000 seeds would be needed if there is a difference at all.")
        else:
            many = "1 more seed" if pair.more_seeds == 1 else f"{pair.more_seeds} more seeds"
            out.append(f"{seen}: about {many} would tell, if that is the true difference.")
    return out


def _curves(
    plan: Mapping[str, Any], unit: str, spent: Mapping[str, Sequence[Run]], scores: Any, step: float
) -> dict[str, Any]:
    """Held-out pass@1 against what was spent: interquartile means over seeds and tasks at equal distances.

    In the budget's unit it goes to its end, in the other as far as every run got.
    """
    budget = plan["budget"]
    end = budget["amount"] if unit == budget["unit"] else min(r[unit] for runs in spent.values() for r in runs)
    ends = np.linspace(0, end, plan["points"] + 1)
    out: dict[str, Any] = {"x": ends.tolist()}
    for method in spent:
        found = [
            interval(scores(method, lambda r, x=x: _at(r["curve"], unit, x)), "iqm",
                     resamples=RESAMPLES, bounds=BOUNDS, step=step)
            for x in ends
        ]  # fmt: skip
        out[method] = {key: [getattr(i, key) for i in found] for key in ("value", "low", "high")}
    return out


def _at(curve: Sequence[Mapping[str, float]], unit: str, x: float) -> float:
    """A run's learning curve between its points, a straight line; after the last one as there."""
    return float(np.interp(x, [p[unit] for p in curve], [p["pass@1"] for p in curve]))


def _profile(final: Mapping[str, Scores]) -> dict[str, Any]:
    """The share of runs with a score above each threshold."""
    out: dict[str, Any] = {"x": THRESHOLDS}
    for method, x in final.items():
        value, low, high = profile(x, THRESHOLDS)
        out[method] = {"value": value.tolist(), "low": low.tolist(), "high": high.tolist()}
    return out


def _pass_at(spent: Mapping[str, Sequence[Run]], methods: Sequence[str], scores: Any, responses: int) -> dict[str, Any]:
    """Held-out pass@k where the budget is spent, for every k that all runs can estimate."""
    # As JSON the keys of pass@k are text.
    ks = set.intersection(*({int(k) for k in r["pass_at"]} for m in methods for r in spent[m]))
    out: dict[str, Any] = {"x": sorted(ks)}
    for method in methods:
        found = [
            interval(scores(method, lambda r, k=k: {int(i): v for i, v in r["pass_at"].items()}[k]), "iqm",
                     resamples=RESAMPLES, bounds=BOUNDS, step=k / responses)
            for k in sorted(ks)
        ]  # fmt: skip
        out[method] = {key: [getattr(i, key) for i in found] for key in ("value", "low", "high")}
    return out
