"""Both arms of a claim on the same seeds, and the effect with its interval, whatever it is."""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from assay.catalogue.claim import Claim
from assay.errors import UsageError
from assay.lab.settings import load
from assay.records.files import write_text
from assay.statistics.paired_effect import paired_effect


def run_claim(
    claim: Claim,
    folder: Path,
    seeds: Sequence[int] = range(5),
    options: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Run every arm on every seed and return the record of it, which JSON can hold.

    If the claim has a sweep, every arm first runs each of its combinations on the tuning seeds and takes the one with
    the largest mean, the first of equals. What is going to be run is written to ``folder/settings.json`` before the
    first run; a folder that holds other settings is refused, and runs it holds already are not repeated, so that an
    interrupted claim goes on.

    Args:
        claim: what to run.
        folder: where runs are kept.
        seeds: one pair of runs each, two or more.
        options: further knobs of the setting, over the claim's own.
        say: told of each finished run in a line.

    Raises:
        UsageError: too few seeds, an unknown knob, or a folder of other settings.
    """
    if len(set(seeds)) < 2:
        raise UsageError("a claim is run on two or more different seeds, or its effect has no interval")
    if clash := set(seeds) & set(claim.tuning if claim.sweep else ()):
        raise UsageError(f"seed {min(clash)} is one that the sweep of {claim.paper} tunes on; take others")
    base = {**claim.options, **(options or {})}
    choices = [
        {k: v for k, v in zip(claim.sweep, values, strict=True) if k not in (options or {})}
        for values in itertools.product(*claim.sweep.values())
    ]
    choices = list({json.dumps(c): c for c in choices}.values())
    plan: dict[str, Any] = {
        "paper": claim.paper,
        "claim": claim.text,
        "measure": claim.measure,
        "better": claim.better,
        "baseline": claim.baseline,
        "arms": {name: dict(arm) for name, arm in claim.arms.items()},
        "setting": {"name": claim.setting, **load(claim.setting, {**base, **choices[0]}).describe()},
        "sweep": {k: list(v) for k, v in claim.sweep.items() if k not in (options or {})},
        "tuning": list(claim.tuning) if len(choices) > 1 else [],
        "seeds": list(dict.fromkeys(seeds)),
    }
    if claim.name:
        plan["name"] = claim.name
    folder.mkdir(parents=True, exist_ok=True)
    _settle(folder / "settings.json", plan)

    def run(arm: str, seed: int, choice: Mapping[str, Any]) -> dict[str, float]:
        setting = load(claim.setting, {**base, **choice})
        name = "@".join([arm, *(f"{k}={v}" for k, v in choice.items())])
        path = folder / f"seed-{seed}" / name / "result.json"
        found = _once(path, functools.partial(setting.run, claim.arms[arm], seed))
        say(f"{claim.paper} seed {seed} {name}: {claim.measure} {found[claim.measure]:.4f}")
        return found

    chosen: dict[str, dict[str, Any]] = {}
    tried: dict[str, list[dict[str, Any]]] = {}
    for arm in claim.arms:
        if len(choices) == 1:
            chosen[arm] = choices[0]
            continue
        tried[arm] = [
            {**c, "mean": float(np.mean([run(arm, seed, c)[claim.measure] for seed in claim.tuning]))} for c in choices
        ]
        means = [t["mean"] for t in tried[arm]]
        chosen[arm] = choices[means.index(max(means))]
    runs: list[dict[str, Any]] = []
    for seed in dict.fromkeys(seeds):
        for arm in claim.arms:
            runs.append({"seed": seed, "arm": arm, **run(arm, seed, chosen[arm])})
    values = {arm: [r[claim.measure] for r in runs if r["arm"] == arm] for arm in claim.arms}
    effect = paired_effect(values[claim.better], values[claim.baseline])
    average = {arm: float(np.mean(v)) for arm, v in values.items()}
    return {
        **plan,
        "tried": tried,
        "chosen": chosen,
        "runs": runs,
        "means": average,
        "effect": asdict(effect),
        "verdict": effect.verdict,
    }


def _settle(path: Path, plan: Mapping[str, Any]) -> None:
    """Write the plan, or see that what is there is the same."""
    text = json.dumps(plan, indent=1, sort_keys=True)
    if not path.is_file():
        write_text(path, text)
    elif path.read_text(encoding="utf-8") != text:
        raise UsageError(f"{path} holds other settings; keep those, or run in another folder")


def _once(path: Path, measure: Callable[[Path], Mapping[str, float]]) -> dict[str, float]:
    """Return the stored numbers of a run, made if there are none."""
    if path.is_file():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    start = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {**measure(path.parent), "seconds": round(time.monotonic() - start, 1)}
    write_text(path, json.dumps(found, indent=1))
    return found
