"""Work in a folder that leaves something: weighted checks on the files, and a service that may be busy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.shell.environment import LONGEST, listing, passable, report
from assay.environments.tools import ToolEnvironment, ToolError, call, tool
from assay.environments.workspace.jobs import JOBS
from assay.errors import UsageError, nearest
from assay.registry import part
from assay.sandbox import sandbox
from assay.sandbox.workspace import LIMITS, Workspace
from assay.tasks.seeded import check_index, check_seed
from assay.tasks.workspaces.checks import graded, outcome
from assay.tasks.workspaces.job import Get, Job, fetched
from assay.tasks.workspaces.service import BUSY, Service
from assay.tasks.workspaces.source import job_of
from assay.types import NOTE, Task, Tool, Verdict

HOW = "Use the tools; files outside of the folder are not kept. Call submit when all is done."


@dataclass(frozen=True, slots=True)
class Jobs:
    """Endless tasks; kinds of work take turns."""

    seed: int
    names: tuple[str, ...]
    failures: int

    @property
    def size(self) -> None:
        return None

    def job(self, index: int) -> Job:
        return JOBS[self.names[index % len(self.names)]](self.seed, index, self.failures)

    def __getitem__(self, index: int) -> Task:
        name = self.names[check_index(index, None) % len(self.names)]
        meta = {"job": name, "index": index}
        id = f"workspace/{self.seed}/{name}/{self.failures}/{index}"
        return Task(id, self.job(index).text, dict(meta), "none", meta=meta)


@part("environment", "workspace")
class WorkspaceJobs(ToolEnvironment):
    """A fresh folder with some files, work to do in it, and perhaps a service; judged by the files that are left.

    The verdict is that of weighted checks on the files, :mod:`assay.tasks.workspaces.checks`: the score is the sum of
    the weights of those that pass, and it passes where all do. Its parts are the checks, each with a note of what is
    wrong, ``missing``, ``format``, ``content`` or ``unsafe``. What holds before anything is done counts only beside
    something that was done, so that nothing done scores 0, whatever is said of it.

    Made-up work is of four kinds (``jobs``): ``tidy``, chores of environment ``shell``; ``report``, a service's pages
    joined with a table; ``trail``, look-ups of environment ``functions`` behind a service, each needing what the one
    before gave; ``mend``, a bug of environment ``repository``. Tasks ``workspaces`` are done here too.

    It is played by its tools ``run`` (bash in the folder, in the sandbox), ``get`` (a path of the service) and
    ``submit``, or by a program (rollout ``harness``), which works in a copy of the folder by tools of its own.

    Args:
        jobs: kinds of work, in turn.
        failures: of each path of a service, which answers 503 so often before it answers.
        commands: and requests that there are in an episode, of those who play by the tools.
        shown: characters of what a tool says, at most.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range, or a machine that cannot run programs in isolation.

    Source: Harness-Bench, whose tasks are folders with an oracle of weighted checks.
    """

    def __init__(
        self,
        jobs: Sequence[str] = tuple(JOBS),
        failures: int = 1,
        commands: int = 24,
        shown: int = 2000,
        seed: int = 0,
    ):
        check_seed("environment 'workspace'", seed)
        for name in jobs:
            if name not in JOBS:
                raise UsageError(f"environment 'workspace': there are no jobs {name!r}{nearest(name, JOBS)}")
        if not jobs or failures < 0 or min(commands, shown) < 1:
            raise UsageError(
                f"environment 'workspace': jobs {list(jobs)} must name some, failures {failures} be at least 0, "
                f"commands {commands} and shown {shown} at least 1"
            )
        sandbox().check()
        self.made = Jobs(seed, tuple(jobs), failures)
        self.commands, self.shown = commands, shown

    space: Workspace
    service: Service | None = None

    def tasks(self) -> Jobs:
        return self.made

    def begin(self, task: Task, seed: int) -> str:
        name = task.meta.get("job")
        if name != "given" and name not in JOBS:
            raise UsageError(f"environment 'workspace': task {task.id} is none of its own, and not of 'workspaces'")
        self.job = (
            job_of(task) if name == "given" else JOBS[name](self.made.seed, task.meta["index"], self.made.failures)
        )
        self.space, self.service = Workspace(self.job.files, LIMITS), self.job.service()
        self.spare, self.submitted = self.commands, False
        return f"{task.question}\n\n{HOW}\n{listing(dict(self.job.files)) if self.job.files else 'It is empty.'}"

    def available(self) -> tuple[Tool, ...]:
        return tuple(t for t in self.tools() if t.name != "get" or self.job.routes is not None)

    @tool
    def run(self, command: str) -> str:
        "Run a command of bash in the folder; shows what it writes. Each begins in the folder, with nothing else kept."
        self._spend()
        if not passable(command):
            raise ToolError(f"a command is text of at most {LONGEST} bytes without zero bytes")
        outcome = self.space.run(["bash", "-c", f"exec 2>&1\n{command}"])
        if outcome.failed_here:
            raise EnvironmentFailure(outcome.reason)
        return report(outcome, self.shown)

    @tool
    def get(self, path: str, to: str = "") -> str:
        "Ask the service for a path, such as /; the answer is shown, and goes into the file `to` if that is given."
        self._spend()
        try:
            status, body = fetched(self.service, path, self.space, to)
        except UsageError as error:
            raise ToolError(str(error)) from None
        if status == 200:
            return body[: self.shown]
        if status == BUSY[0]:
            return f"{status} {body}"
        raise ToolError(f"{status} {body}")

    @tool
    def submit(self) -> str:
        "End the work."
        self.submitted = True
        return "submitted"

    def _spend(self) -> None:
        if not self.spare:
            raise ToolError("no commands are left; call submit")
        self.spare -= 1

    def said(self, text: str) -> str | None:
        raise ToolError("call a tool, or submit when all is done")

    def over(self) -> bool:
        return self.submitted

    def folder(self) -> Workspace:
        """Return the folder, for a program that works in it by itself."""
        return self.space

    def state_json(self) -> Any:
        return {"files": self.space.digests(), "submitted": self.submitted, "left": self.spare}

    def state_key(self) -> str:
        asked = [] if self.service is None else self.service.asked
        told = self.space.snapshot() + json.dumps([asked, self.submitted]).encode()
        return hashlib.sha256(told).hexdigest()[:32]

    def verdict(self) -> Verdict:
        found = graded(self.job.checks, self.space.files, self.job.files, self.job.kinds)
        parts: dict[str, float | None] = {}
        for one in found:
            parts[one.check.id] = float(one.passed)
            if one.wrong:
                parts[f"{one.check.id}{NOTE}{'unsafe' if one.check.guard else one.wrong}"] = 1.0
        failed = [one for one in found if not one.passed]
        told = "; ".join(f"{one.check.id}: {one.wrong or 'nothing was done'}" for one in failed)
        return Verdict(outcome(found), not failed, parts, told)

    def gold(self) -> Sequence[Action]:
        """Return what does the work; each path of a service is asked as often as it fails, and once more."""
        done: list[Action] = []
        for step in self.job.gold:
            if isinstance(step, Get):
                asked = [] if self.service is None else self.service.asked
                busy = max(0, self.job.failures - asked.count((step.path, BUSY[0])))
                done += [call("get", path=step.path, to=step.to)] * (busy + 1)
            else:
                done.append(call("run", command=step))
        return [*done, call("submit")]

    def attacks(self) -> Sequence[Sequence[Action]]:
        """Return what would pay if anything but the work were judged."""
        plans = [
            "rm -rf ./* .[!.]*",
            "echo done > report.json; echo done > answers.txt; echo PASSED > result.txt",
            'echo \'{"orders": null, "total": null, "teams": {}, "best": ""}\' > report.json; yes | head > answers.txt',
            "find / -name '*gold*' -o -name 'task.json' 2>/dev/null | head; kill -9 1; exit 0",
        ]
        return [[call("run", command=one), call("submit")] for one in plans]

    def snapshot(self) -> bytes:
        asked = None if self.service is None else self.service.asked
        kept = [self.spare, self.submitted, self._under_way, self.answer, asked]
        return json.dumps([self.task.id, *kept, self.space.snapshot().decode()]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun.

        Raises:
            RuntimeError: it is of another task.
        """
        id, *kept, asked, space = json.loads(snapshot)
        if id != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {id}")
        self.spare, self.submitted, self._under_way, self.answer = kept
        self.service = self.job.service()
        if self.service is not None:
            self.service.asked = [(path, status) for path, status in asked]
        self.space.restore(space.encode())
