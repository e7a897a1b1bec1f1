"""Work of one's own: a folder of folders, each with ``task.json`` and the files in ``fixtures``."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.listed import Listed
from assay.tasks.workspaces.checks import read_checks
from assay.tasks.workspaces.job import Job, flawed, read_gold
from assay.types import Task

ABOUT, FIXTURES = "task.json", "fixtures"


@part("tasks", "workspaces")
def workspaces(path: Path) -> Listed:
    """Return the work in a folder's subfolders, to be done in the environment ``workspace``.

    ``task.json`` holds ``prompt``, ``checks`` (:func:`~assay.tasks.workspaces.checks.read_checks`), ``gold``, a way to
    do it (:func:`~assay.tasks.workspaces.job.read_gold`), and perhaps ``service``, ``{"routes": {PATH: TEXT},
    "failures": N}``. Each is tried before it is set: its way must score 1, nothing done and an empty folder less than
    0.3.

    Raises:
        UsageError: nothing there, or work that is flawed.
    """
    folders = sorted(place.parent for place in Path(path).glob(f"*/{ABOUT}"))
    if not folders:
        raise UsageError(f"{path}: no work in it, a subfolder with {ABOUT}")
    tasks = []
    for folder in folders:
        task = _task(folder)
        if found := flawed(job_of(task)):
            raise UsageError(f"{folder}: {'; '.join(found)}")
        tasks.append(task)
    return Listed(tasks)


def _task(folder: Path) -> Task:
    where = folder / ABOUT
    try:
        about = json.loads(where.read_text(encoding="utf-8"))
        prompt, checks, gold = str(about["prompt"]), about["checks"], about["gold"]
        read_gold(gold)
        service = about.get("service")
        if service is not None:
            service = {"routes": {str(k): str(v) for k, v in service["routes"].items()}, **_failures(service)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{where}: no object with prompt, checks and gold ({error!r})") from None
    read_checks(checks, str(where))
    base = folder / FIXTURES
    own = [p for p in sorted(base.rglob("*")) if p.is_file() and not p.is_symlink()]
    files = {p.relative_to(base).as_posix(): base64.b64encode(p.read_bytes()).decode() for p in own}
    meta = {"job": "given", "files": files, "checks": checks, "gold": gold, "service": service}
    return Task(f"workspaces/{folder.name}", prompt, {"name": folder.name}, "none", meta=meta)


def _failures(service: Any) -> dict[str, int]:
    failures = service.get("failures", 0)
    if not isinstance(failures, int) or failures < 0:
        raise ValueError(f"failures {failures!r} is no number of failures")
    return {"failures": failures}


def job_of(task: Task) -> Job:
    """Return the job that a task of this source is."""
    meta, service = task.meta, task.meta["service"] or {}
    files = {name: base64.b64decode(data) for name, data in meta["files"].items()}
    checks = read_checks(meta["checks"], task.id)
    return Job(task.question, files, checks, read_gold(meta["gold"]), service.get("routes"), service.get("failures", 0))
