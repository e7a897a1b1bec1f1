"""Pull requests of a file as tasks for the environment ``repository``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.listed import Listed
from assay.tasks.repositories.examine import Examined, PullRequest, examine
from assay.types import Task


@part("tasks", "repositories")
def repositories(path: Path, skip: bool = False, examined: bool = True) -> Listed:
    """Return the pull requests of a file of rows, each of which is examined first.

    A row is ``{"id", "issue", "files", "fix", "tests"}``, the last three from paths to texts, and maybe a ``script``;
    see :class:`~assay.tasks.repositories.examine.PullRequest`. They are played in the environment ``repository``, and
    judged by their script on the files that are left, the tests over them.

    Args:
        path: of the file.
        examined: whether they are; else they are what ``assay tasks make S172`` begins with, whose models write what
            their tests need.
        skip: leave out what is of no use, rather than refuse all.

    Raises:
        UsageError: a row that is none, one that is of no use, or nothing left.
    """
    tasks = []
    for where, row in read_rows(path):
        request = read_request(row, where)
        found = examine(request) if examined else Examined("")
        if found.accepted:
            tasks.append(task_of(request, found.collected))
        elif not skip:
            raise UsageError(f"{where}: {request.id}: {found.reason}")
    if not tasks:
        raise UsageError(f"{path}: no pull request that is a task")
    return Listed(tasks)


def read_request(row: Any, where: str) -> PullRequest:
    """Return a row's pull request.

    Raises:
        UsageError: it is none.
    """
    keys = ("files", "fix", "tests")
    if not isinstance(row, Mapping) or not {"id", "issue", *keys} <= set(row):
        raise UsageError(f"{where}: a row is {{'id', 'issue', 'files', 'fix', 'tests'}}, and maybe 'script'")
    for key in keys:
        if not isinstance(row[key], Mapping) or not all(isinstance(x, str) for item in row[key].items() for x in item):
            raise UsageError(f"{where}: {key} must lead from paths to texts")
    files, fix, tests = (dict(row[key]) for key in keys)
    return PullRequest(str(row["id"]), str(row["issue"]), files, fix, tests, str(row.get("script") or ""))


def task_of(request: PullRequest, collected: int) -> Task:
    """Return the task to mend what a pull request mends, by so many tests."""
    return Task(
        id=f"repositories/{request.id}",
        prompt=f"{request.issue}\n\nMend it with the tools, and call submit. Tests that are not shown decide.",
        reference={"id": request.id},
        kind="none",
        meta={
            "files": dict(request.files),
            "fix": dict(request.fix),
            "tests": dict(request.tests),
            "script": request.script,
            "collected": collected,
        },
    )


def request_of(task: Task) -> PullRequest:
    """Return the pull request of a task."""
    meta = task.meta
    return PullRequest(task.id, task.question, meta["files"], meta["fix"], meta["tests"], meta["script"])
