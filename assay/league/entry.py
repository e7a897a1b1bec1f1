"""Methods' runs in a setting: tuned until the optimum is within, then on the seeds that count; kept as they end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from assay.compare.plan import Plan
from assay.compare.processes import Found, Job, cores, result_of, run_jobs
from assay.compare.run import held
from assay.compare.runs import Runs
from assay.compare.standing import BASELINE, counted, origin
from assay.errors import UsageError
from assay.league.settings import Setting
from assay.records.files import write_text
from assay.records.record_text import record_text
from assay.records.run_folder import environment
from assay.statistics.sweep import Tried, best, beyond, open_ends

Record = dict[str, Any]


def enter(
    setting: Setting,
    entrants: Mapping[str, Mapping[str, Any]],
    folder: Path,
    store: Path,
    jobs: int = 0,
    say: Callable[[str], None] = lambda line: None,
    unprotected: bool = False,
) -> dict[str, Record] | None:
    """Run methods in a setting as far as their records do not have it yet; ``None`` if asked to stop.

    The sweep of the setting goes on beyond an end while a method does best there, up to a hundred times; the best of
    it is then run on every seed that counts. A method waits for its own sweep alone: whatever can be run is, side by
    side. The record ``store/LABEL.json`` is written whenever a run ends, and a run that it has is not repeated, so that
    a method's runs may be spread over days and machines. The baseline is run from every start that another method was
    run from, as far as the folder has it.

    Args:
        setting: of the league.
        entrants: per label the ``[method]`` table.
        folder: of the runs themselves, shared by the methods of a setting: they begin from the same warm starts.
        store: of the records.
        jobs: processes side by side; 0 for one per core.
        say: told of each run that ends, in a line.
        unprotected: programs from responses run without the sandbox.

    Returns:
        The records by label.

    Raises:
        UsageError: a record there is of another method or of the setting as it was before; the folder is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Found] = {}
    entries = [Entry(setting, label, method, folder, store, unprotected) for label, method in entrants.items()]
    asked: set[str] = set()

    def due() -> list[Job]:
        """What no entry has asked for before; a warm start is asked for once."""
        jobs = {job.name: job for entry in entries for job in entry.due(found)}
        for base in (entry for entry in entries if entry.label == BASELINE):
            jobs |= base.unpaired([entry for entry in entries if entry is not base], {*jobs, *asked})
        new = [job for job in jobs.values() if job.name not in asked]
        asked.update(job.name for job in new)
        return new

    def done(job: Job, result: Found) -> list[Job]:
        for entry in entries:
            entry.keep(job, result)
        further = due()
        told = result.get("error") or "done"
        say(f"[{len(asked & set(found))}/{len(asked)}] {job.name}: {told}, {result.get('seconds', 0):.0f} s")
        return further

    with held(folder):
        if not run_jobs(due(), found, jobs or cores(), done):
            return None
    return {entry.label: entry.record for entry in entries}


class Entry:
    """A method on its way through a setting: the sweep as far as it has come, then the seeds that count.

    Args:
        setting, folder, store, unprotected: as of :func:`enter`.
        label: what the method is called.
        method: its ``[method]`` table.

    Attributes:
        record: what ``store/LABEL.json`` holds.
        tuned: whether the sweep has ended.
        failed: whether it has without a run that finished, so that there is nothing to run on the seeds that count.
    """

    def __init__(
        self, setting: Setting, label: str, method: Mapping[str, Any], folder: Path, store: Path, unprotected: bool
    ):
        self.setting, self.label, self.method = setting, label, method
        self.folder, self.path, self.unprotected = folder, store / f"{label}.json", unprotected
        self.record = begun(setting, label, method, self.path)
        self.known: dict[str, Found] = {run["name"]: run["result"] for run in self.record["runs"]}
        """One result of each run; the record has one for each start."""
        self.first = setting.plan(label, method).sweep
        self.sweep: Mapping[str, Sequence[Any]] = {
            key: sorted({*values, *(row[key] for row in self.record["tried"])}) for key, values in self.first.items()
        }
        self.tuned = self.failed = False

    def due(self, found: dict[str, Found]) -> list[Job]:
        """Return the runs that can be begun now and have not ended; none when all is done, or waits for them.

        Args:
            found: results by name; those that the record or the folder has are put into it.
        """
        while True:
            runs = Runs(self.setting.plan(self.label, self.method, self.sweep), self.folder, self.unprotected)
            left = self._left(runs.jobs(found) if self.tuned else runs.tuning(), found)
            if left or self.tuned or self.failed:
                return left
            self._settle(runs, found)

    def unpaired(self, others: Sequence[Entry], asked: Collection[str]) -> dict[str, Job]:
        """Return this method's runs from starts that others' runs that count began from, but none of its own, by name.

        Of these, the ones whose start is in the folder: only the machine that made it can go on from it. Runs that were
        asked for are left out.
        """
        if not self.tuned:
            return {}
        runs = Runs(self.setting.plan(self.label, self.method, self.sweep), self.folder, self.unprotected)
        wanted = {each for other in others for each in counted(other.record)} - set(counted(self.record))
        out = {}
        for job in runs.jobs(self.known):
            start = next((result_of(self.folder / "runs" / name) for name in job.needs), None)
            mine = job.name.split("/")[-1] == self.label and job.name not in asked
            if mine and start is not None and (_seed(job), origin(start)) in wanted:
                shutil.rmtree(job.folder, ignore_errors=True)  # of another start, as the record told it
                out[job.name] = job
        return out

    def keep(self, job: Job, result: Found) -> None:
        """Write a run's result into the record, if it is one of this method's and has finished."""
        mine = job.name.split("/")[-1].split("@")[0] == self.label
        there = {(run["name"], origin(run["result"])) for run in self.record["runs"]}
        if not mine or result["status"] != "finished" or (job.name, origin(result)) in there:
            return
        here = {k: v for k, v in environment().items() if k != "command"}
        if here not in self.record["environments"]:
            self.record["environments"].append(here)
        at = self.record["environments"].index(here)
        self.known[job.name] = result
        self.record["runs"].append({"name": job.name, "environment": at, "result": result})
        self._write()

    def _left(self, every: Sequence[Job], found: dict[str, Found]) -> list[Job]:
        """The jobs without a result; a warm start only where a run begins from it: other machines made their own."""
        for job in every:
            if job.name in self.known and result_of(job.folder) is None:
                job.folder.mkdir(parents=True, exist_ok=True)
                write_text(job.folder / "result.json", json.dumps(self.known[job.name]))
            result = found.get(job.name) or result_of(job.folder)
            if result is not None and (job.name in found or result["status"] == "finished"):
                found[job.name] = result
                self.keep(job, result)  # what a lost record does not have
        left = [job for job in every if job.name not in found]
        starts = {name for job in every for name in job.needs}
        wanted = {name for job in left for name in job.needs}
        return [job for job in left if job.name not in starts - wanted]

    def _settle(self, runs: Runs, found: Mapping[str, Found]) -> None:
        """Widen the sweep by what it found, or take the best of it; give up where every run of it failed."""
        self.record["tried"] = tried(runs, self.label, found)
        if all(isnan(row["mean"]) for row in self.record["tried"]):
            self.failed = True
            return
        wider = _wider(runs.plan, self.record["tried"], self.first)
        if wider != self.sweep:
            self.sweep = wider
            return
        self.tuned = True
        top = best(self.record["tried"])
        self.record["chosen"] = {key: top[key] for key in self.sweep}
        self.record["unsettled"] = [
            f"{self.label} did best at the {side} {key} that was tried" for key, side in open_ends(self.record["tried"])
        ]
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, record_text(self.record))


def _seed(job: Job) -> int:
    return int(job.name.split("/")[1].removeprefix("seed-"))


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
