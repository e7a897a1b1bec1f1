"""One method's runs in a setting: tuned until its optimum is within, then on the seeds that count; kept as they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.compare.plan import Plan
from assay.compare.processes import Found, Job, cores, result_of, run_jobs
from assay.compare.run import held
from assay.compare.runs import Runs
from assay.errors import UsageError
from assay.league.settings import Setting
from assay.records.files import write_text
from assay.records.record_text import record_text
from assay.records.run_folder import environment
from assay.statistics.sweep import Tried, best, beyond, open_ends

Record = dict[str, Any]


def enter(
    setting: Setting,
    label: str,
    method: Mapping[str, Any],
    folder: Path,
    store: Path,
    jobs: int = 0,
    say: Callable[[str], None] = lambda line: None,
    unprotected: bool = False,
) -> Record | None:
    """Run a method in a setting as far as its record does not have it yet; ``None`` if asked to stop.

    The sweep of the setting goes on beyond an end while the method does best there, up to a hundred times; the best of
    it is then run on every seed that counts. The record ``store/LABEL.json`` is written whenever a run ends, and a run
    that it has is not repeated, so that a method's runs may be spread over days and machines.

    Args:
        setting: of the league.
        label: what the method is called.
        method: its ``[method]`` table.
        folder: of the runs themselves, shared by the methods of a setting: they begin from the same warm starts.
        store: of the records.
        jobs: processes side by side; 0 for one per core.
        say: told of each run that ends, in a line.
        unprotected: programs from responses run without the sandbox.

    Raises:
        UsageError: the record there is of another method or of the setting as it was before; the folder is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = begun(setting, label, method, store / f"{label}.json")
    with held(folder):
        sweep = {key: sorted({*values, *(row[key] for row in record["tried"])})
                 for key, values in setting.plan(label, method).sweep.items()}  # fmt: skip
        while True:
            runs = Runs(setting.plan(label, method, sweep), folder, unprotected)
            found = _run(runs.tuning(), record, store, jobs, say)
            if found is None:
                return None
            record["tried"] = tried(runs, label, found)
            wider = _wider(runs.plan, record["tried"], setting.plan(label, method).sweep)
            if wider == sweep:
                break
            sweep = wider
        top = best(record["tried"])
        record["chosen"] = {key: top[key] for key in sweep}
        record["unsettled"] = [f"{label} did best at the {side} {key} that was tried"
                               for key, side in open_ends(record["tried"])]  # fmt: skip
        if _run(runs.jobs(found), record, store, jobs, say) is None:
            return None
    return record


def begun(setting: Setting, label: str, method: Mapping[str, Any], path: Path) -> Record:
    """Return the record of a method in a setting as far as there is one, an empty one otherwise."""
    empty = {"setting": setting.name, "label": label, "method": dict(method), "fingerprint": setting.fingerprint}
    if not path.is_file():
        return {
            **empty,
            "measure": setting.measure,
            "tried": [],
            "chosen": {},
            "unsettled": [],
            "environments": [],
            "runs": [],
        }
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    for key, value in empty.items():
        if record[key] != value:
            raise UsageError(f"{path} is of another {key} than today's; move it away to run {label} anew")
    return record


def tried(runs: Runs, label: str, found: Mapping[str, Found]) -> Tried:
    """Return what the sweep found; a choice of which a run failed has no number."""
    return [
        {**row["values"], "mean": float("nan") if row["mean"] is None else row["mean"]}
        for row in runs.tried(label, found)
    ]


def _wider(plan: Plan, rows: Tried, first: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the sweep with a value beyond each end at which the method did best, as far as that is within reach."""
    sweep = {key: list(values) for key, values in plan.sweep.items()}
    for key, side in open_ends(rows):
        value = beyond(sweep[key], first[key], side)
        if value is not None:
            sweep[key] = sorted([*sweep[key], value])
    return sweep


def _run(
    every: Sequence[Job], record: Record, store: Path, jobs: int, say: Callable[[str], None]
) -> dict[str, Found] | None:
    """Run the jobs that the record does not have, and put each into it as it ends; ``None`` if asked to stop."""
    known = {run["name"]: run["result"] for run in record["runs"]}
    for job in every:
        if job.name in known and result_of(job.folder) is None:
            job.folder.mkdir(parents=True, exist_ok=True)
            write_text(job.folder / "result.json", json.dumps(known[job.name]))
    finished = {job.name for job in every if (result_of(job.folder) or {}).get("status") == "finished"}
    starts = {name for job in every for name in job.needs}
    wanted = {name for job in every if job.name not in finished for name in job.needs}
    # A warm start is made where a run begins from it; the runs of other days and machines do without.
    left = [job for job in every if job.name not in starts - wanted or job.name in finished]
    here = {k: v for k, v in environment().items() if k != "command"}
    found: dict[str, Found] = {}

    def keep(job: Job, result: Found) -> None:
        if job.name not in starts and result["status"] == "finished" and job.name not in known:
            if here not in record["environments"]:
                record["environments"].append(here)
            known[job.name] = result
            record["runs"].append(
                {"name": job.name, "environment": record["environments"].index(here), "result": result}
            )
            store.mkdir(parents=True, exist_ok=True)
            write_text(store / f"{record['label']}.json", record_text(record))
        done = sum(j.name in found for j in left)
        say(f"[{done}/{len(left)}] {job.name}: {result.get('error') or 'done'}, {result.get('seconds', 0):.0f} s")

    whole = run_jobs(left, found, jobs or cores(), keep)
    for job in left:  # what an earlier call left in the folder and a lost record does not have
        if job.name in found and job.name not in {*known, *starts}:
            keep(job, found[job.name])
    return found if whole else None
