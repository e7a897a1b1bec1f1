"""Where strategies stand in a setting without learning; it follows from the records alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.compare.statistics import paired_test
from assay.league.places import place
from assay.league.strategies import BASELINE, BankSetting
from assay.statistics.paired_effect import Effect
from assay.statistics.power import holm

HEAD = (
    "strategy",
    "effect, points",
    "p",
    "accuracy",
    "by step",
    "of fewer",
    "tokens",
    "scoring",
    "unanswered",
    "ran at",
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A strategy against the baseline, on the tasks that both have at every checkpoint.

    Attributes:
        label: what it is called.
        effect: mean over tasks of the difference in accuracy, itself a mean over checkpoints, under the largest budget,
            with Student's 95% interval; ``None`` for the baseline.
        p: of the t-test that the interval goes with, by Holm over the table.
        accuracy: under the largest budget, at each checkpoint.
        fewer: under the smaller budgets, mean over checkpoints.
        tokens: under the largest budget, by the baseline's.
        scoring: share of them that scored responses.
        unanswered: share of tasks that it would not answer.
        record: the whole of it.
    """

    label: str
    effect: Effect | None
    p: float
    accuracy: Sequence[float]
    fewer: Sequence[float]
    tokens: float
    scoring: float
    unanswered: float
    record: Mapping[str, Any]


def records(setting: BankSetting, store: Path) -> dict[str, dict[str, Any]]:
    """Return the whole records of a setting as it is today, by strategy, the baseline first; none without it."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(store.glob("*.json"))]
    whole = {
        record["label"]: record
        for record in found
        if record["fingerprint"] == setting.fingerprint and {p["step"] for p in record["points"]} == set(setting.steps)
    }
    return {BASELINE: whole.pop(BASELINE), **whole} if BASELINE in whole else {}


def standing(setting: BankSetting, found: Mapping[str, Mapping[str, Any]]) -> list[Standing]:
    """Return the strategies, those with the largest effect first and the baseline among them."""
    *few, most = setting.budgets
    base = {budget: _outcomes(setting, found[BASELINE], budget) for budget in setting.budgets}
    costs = sum(_of(found[BASELINE], step, most)["tokens"] for step in setting.steps)
    stands, tests = [], {}
    for label, record in found.items():
        mine = _outcomes(setting, record, most)
        points = [_of(record, step, most) for step in setting.steps]
        tokens = sum(point["tokens"] for point in points)
        effect = None
        if label != BASELINE:
            known = ~np.isnan(mine + base[most]).any(0)
            ours, theirs = (x[:, known].mean(0) for x in (mine, base[most]))
            effect, tests[label] = paired_test(ours, theirs)
        stands.append(
            Standing(
                label,
                effect,
                1.0,
                np.nanmean(mine, 1).tolist(),
                [float(np.nanmean(_outcomes(setting, record, budget))) for budget in few],
                tokens / costs,
                sum(point["scoring"] for point in points) / max(tokens, 1),
                float(np.mean([mark == "-" for point in points for mark in point["passed"]])),
                record,
            )
        )
    adjusted = dict(zip(tests, holm(list(tests.values())).tolist(), strict=True)) if tests else {}
    stands = [replace(stand, p=adjusted.get(stand.label, 1.0)) for stand in stands]
    return sorted(stands, key=lambda stand: -(stand.effect.value if stand.effect else 0.0))


def table(setting: BankSetting, stands: Sequence[Standing]) -> str:
    """Return a setting's table in Markdown."""
    lines: list[Sequence[str]] = [HEAD, ["---"] * len(HEAD), *map(cells, stands)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(stand: Standing) -> Sequence[str]:
    """Return the row of a strategy."""
    effect, p = "baseline", ""
    if stand.effect is not None:
        low, high = 100 * stand.effect.low, 100 * stand.effect.high
        effect, p = f"{100 * stand.effect.value:+.2f} [{low:+.2f}, {high:+.2f}]", f"{stand.p:.2g}"
    percent = [f"{100 * x:.1f}%" for x in (float(np.mean(stand.accuracy)), *stand.accuracy)]
    fewer = ", ".join(f"{100 * x:.1f}%" for x in stand.fewer)
    where = "; ".join(dict.fromkeys(map(place, stand.record["environments"])))
    shares = [f"{100 * x:.0f}%" for x in (stand.scoring, stand.unanswered)]
    return [
        f"`{stand.label}`",
        effect,
        p,
        percent[0],
        ", ".join(percent[1:]),
        fewer,
        f"{stand.tokens:.2f}",
        *shares,
        where,
    ]


def _of(record: Mapping[str, Any], step: int, budget: int) -> Mapping[str, Any]:
    """What a record has of a checkpoint under a budget; of a strategy that does not depend on it, what there is."""
    points = [point for point in record["points"] if point["step"] == step]
    return next((point for point in points if point["budget"] == str(budget)), points[0])


def _outcomes(setting: BankSetting, record: Mapping[str, Any], budget: int) -> np.ndarray:
    """Return whether answers were right, ``(K, T)`` by checkpoint and task; NaN where that could not be judged."""
    value = {"1": 1.0, "0": 0.0, "-": 0.0, "?": np.nan}
    return np.array([[value[mark] for mark in _of(record, step, budget)["passed"]] for step in setting.steps])
