"""One piece of work: what is asked, the files it begins with, its service, its checks, and a way to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.sandbox.workspace import LIMITS, Workspace
from assay.tasks.workspaces.checks import Check, Look, graded, outcome
from assay.tasks.workspaces.service import Service

MOST = 0.3
"""What a folder in which nothing was done scores less than."""


@dataclass(frozen=True, slots=True)
class Get:
    """Fetch a path of the service into a file; an answer that it is busy is asked again."""

    path: str
    to: str


@dataclass(frozen=True, slots=True)
class Job:
    """See above.

    Attributes:
        text: what is asked.
        files: that there are at first.
        checks: on what is left; their weights sum to 1.
        gold: what does it: commands of bash, and fetches.
        routes: of its service, see :class:`~assay.tasks.workspaces.service.Service`; ``None`` for no service.
        failures: of each path of the service.
        kinds: of checks beside the usual ones.
    """

    text: str
    files: Mapping[str, bytes]
    checks: tuple[Check, ...]
    gold: tuple[str | Get, ...]
    routes: Mapping[str, str] | Callable[[str], str | None] | None = None
    failures: int = 0
    kinds: Mapping[str, Look] | None = None

    def service(self) -> Service | None:
        """Return its service as it is before anybody has asked it anything."""
        return None if self.routes is None else Service(self.routes, self.failures)


def fetched(service: Service | None, path: str, space: Workspace, to: str = "") -> tuple[int, str]:
    """Ask a service; what it answers goes into the file ``to`` as well, if it is named.

    Raises:
        UsageError: there can be no such file.
    """
    status, body = (404, "there is no service") if service is None else service.answer(path)
    if status == 200 and to:
        space.write(to, body)
    return status, body


def worth(job: Job, files: Mapping[str, bytes]) -> float:
    """Return what files are worth by the job's checks."""
    return outcome(graded(job.checks, files, job.files, job.kinds))


def flawed(job: Job) -> list[str]:
    """Return what is wrong with a job, by doing it and by leaving it; empty if it can be set.

    Its way must score 1; the files as they were, and no files, must score less than :data:`MOST`.

    Raises:
        SandboxUnavailable: this machine cannot run programs in isolation.
    """
    found: list[str] = []
    for what, files in (("nothing done", job.files), ("an empty folder", {})):
        if (score := worth(job, files)) >= MOST:
            found.append(f"{what} scores {score:g}, not less than {MOST:g}")
    space, service = Workspace(job.files, LIMITS), job.service()
    for step in job.gold:
        if isinstance(step, Get):
            while (status := fetched(service, step.path, space, step.to)[0]) == 503:
                pass
            if status != 200:
                return [*found, f"its way asks for {step.path}, which answers {status}"]
        else:
            space.run(["bash", "-c", step])
    if (score := worth(job, space.files)) != 1:
        found.append(f"its way scores {score:g}, not 1")
    return found


def read_gold(given: Any) -> tuple[str | Get, ...]:
    """Return a way: a command, or a list of commands and of ``{"get": PATH, "to": FILE}``.

    Raises:
        TypeError, KeyError: it is none.
    """
    steps = [given] if isinstance(given, str) else list(given)
    return tuple(step if isinstance(step, str) else Get(str(step["get"]), str(step["to"])) for step in steps)
