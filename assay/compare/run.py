"""From a plan to its record: warm starts, the sweep, the runs that count."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.compare.plan import Plan, settle
from assay.compare.processes import Found, Job, cores, run_jobs
from assay.compare.record import SCHEMA, judged
from assay.compare.runs import Runs
from assay.errors import UsageError
from assay.from_file import code_marks
from assay.records.files import write_text
from assay.records.run_folder import environment


def compare(
    plan: Plan,
    folder: Path,
    jobs: int = 0,
    say: Callable[[str], None] = lambda line: None,
    unprotected: bool = False,
) -> dict[str, Any] | None:
    """Run a comparison and return its record, which JSON can hold; ``None`` if it was asked to stop.

    A warm-up of the recipe is made once per task and seed, or ``plan.starts`` times per task: every method goes on from
    there, with the same weights and the same next task. The record is also in ``folder/compare.json``. The same call
    goes on where it was stopped; runs that failed are tried again.

    Args:
        plan: what to run; it is settled in ``folder/plan.json`` before the first run.
        folder: where everything is kept.
        jobs: processes side by side; 0 for one per core.
        say: told of each run that ends, in a line.
        unprotected: programs from responses run without the sandbox.

    Raises:
        UsageError: the folder is of another plan, or in use.
        RunError: too few runs succeeded for any comparison.
    """
    if len(plan.methods) < 2:
        raise UsageError("a comparison needs two or more methods: --methods grpo,S014")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    with held(folder):
        described = plan.describe()
        marks = code_marks(described)
        # Runs of one comparison are of one code: a part of one's own that is edited midway makes it another.
        settle(folder / "plan.json", {**described, **({"code": marks} if marks else {})})
        runs = Runs(plan, folder, unprotected)
        found: dict[str, Found] = {}
        every = runs.jobs(found)

        def done(job: Job, result: Found) -> None:
            say(f"[{len(found)}/{len(every)}] {job.name}: {_words(plan, result)}")

        while True:
            if not run_jobs(every, found, jobs or cores(), done):
                return None
            if not runs.outdated(every, found):
                break
        record = {
            "schema": SCHEMA,
            "plan": plan.describe(),
            "tried": {m: runs.tried(m, found) for m in plan.methods} if len(plan.choices) > 1 else {},
            "chosen": {m: runs.best(m, found) for m in plan.methods},
            "runs": runs.records(found),
            "failed": {name: result["error"] for name, result in found.items() if result["status"] != "finished"},
            "environment": {k: v for k, v in environment().items() if k != "command"},
        }
        record = judged(record)
        write_text(folder / "compare.json", json.dumps(record, indent=1) + "\n")
        return record


def _words(plan: Plan, result: Found) -> str:
    if result["status"] != "finished":
        return f"FAILED, {result['error']}"
    if plan.measure not in result:
        return f"{result['seconds']:.0f} s"
    spent = f"{result['rollouts']:,} rollouts, {result['tokens']:,} tokens"
    return f"{plan.measure} {result[plan.measure]:.4f}, {spent}, {result['seconds']:.0f} s"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let no other process run a comparison in the folder."""
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"a comparison is running in {folder}; wait for it or take another --out") from None
        yield
