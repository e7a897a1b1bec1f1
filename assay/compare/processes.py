"""Jobs in processes side by side, each after those it builds on; what is done is not done again."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from assay.compare.job import INTERRUPTED, child
from assay.errors import RunError
from assay.records.files import write_text
from assay.training.interrupt import interrupts

POLL = 0.1
"""Seconds between looks at the processes."""

Found = Mapping[str, Any]
"""``result.json`` of a job: ``status`` is ``finished`` or ``failed``."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be done.

    Attributes:
        name: unique.
        folder: where :mod:`assay.compare.job` is to run it.
        make: returns what goes into ``job.json``, called when all it builds on has ended; RunError fails the job.
        needs: jobs without which it cannot be done.
        after: jobs that must have ended before it, well or not.
    """

    name: str
    folder: Path
    make: Callable[[], Mapping[str, Any]]
    needs: Sequence[str] = ()
    after: Sequence[str] = ()


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def result_of(folder: Path) -> Found | None:
    """Return what a job has left, ``None`` if it has not ended."""
    path = folder / "result.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def run_jobs(
    jobs: Sequence[Job],
    found: dict[str, Found],
    side_by_side: int,
    done: Callable[[Job, Found], Sequence[Job] | None] = lambda job, result: None,
    quiet: bool = False,
) -> bool:
    """Run jobs in their order, as many side by side as told; return False if asked to stop before the end.

    A job that has finished before is not run again; one that failed or was stopped is, from its last checkpoint. Ctrl-C
    or SIGTERM lets every run finish its step, a second Ctrl-C ends them at once.

    Args:
        jobs: names in ``needs`` and ``after`` are of jobs among them.
        found: filled with the result of every job, by name.
        side_by_side: processes at once; the processor's cores are divided among them.
        done: called with each result of this call; jobs that it returns are run before those that wait.
        quiet: say nothing when asked to stop.
    """
    threads = max(1, cores() // side_by_side)
    waiting = []
    for job in jobs:
        result = result_of(job.folder)
        if result is not None and result["status"] == "finished":
            found[job.name] = result
        else:
            waiting.append(job)
    running: list[tuple[Job, BaseProcess]] = []

    def settle(job: Job, result: Found) -> None:
        found[job.name] = result
        waiting[:0] = done(job, result) or ()

    with interrupts(quiet) as interrupt:
        try:
            while (waiting or running) and interrupt.requested is None:
                for job in [j for j in waiting if all(n in found for n in (*j.needs, *j.after))]:
                    if len(running) == side_by_side:
                        break
                    waiting.remove(job)
                    try:
                        running.append((job, _started(job, found, threads)))
                    except RunError as error:
                        settle(job, {"status": "failed", "error": str(error)})
                time.sleep(POLL)
                for job, process in [r for r in running if r[1].exitcode is not None]:
                    running.remove((job, process))
                    settle(job, _ended(job, process.exitcode or 0))
            stopped = bool(waiting or running)
            for _, process in running:
                process.terminate()
            for job, process in running:
                process.join()
                if result_of(job.folder) is not None:
                    settle(job, _ended(job, 0))
            running.clear()
        finally:
            for _, process in running:
                process.kill()
                process.join()
    return not stopped


def _started(job: Job, found: Mapping[str, Found], threads: int) -> BaseProcess:
    """Start a job's process; raise RunError if what it needs failed or its description cannot be made."""
    for name in job.needs:
        if found[name]["status"] != "finished":
            raise RunError(f"{name} failed")
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "result.json").unlink(missing_ok=True)
    write_text(job.folder / "job.json", json.dumps(job.make(), indent=1))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["assay.compare.preload"])
    process = context.Process(target=child, args=(job.folder, threads))
    # The server takes the environment of the moment it begins in. Threads that wait must not keep others from a core.
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        process.start()
    finally:
        if before is None:
            os.environ.pop("OMP_WAIT_POLICY", None)
    return process


def _ended(job: Job, code: int) -> Found:
    """What became of a job whose process has ended by itself."""
    result = result_of(job.folder)
    if result is not None:
        return result
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    if code == INTERRUPTED:
        how = "was asked to stop"
    return {"status": "failed", "error": f"its process {how}; see {job.folder / 'log.txt'}"}
