"""Mend a bug in a small package: read, search, edit, run its tests; judged by tests that the agent does not see."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.repository.packages import Package, evaluated, make_package, said, same
from assay.environments.tools import ToolEnvironment, ToolError, call, tool
from assay.errors import UsageError
from assay.registry import part
from assay.sandbox import sandbox
from assay.sandbox.confine import interpreter
from assay.sandbox.workspace import LIMITS, Workspace
from assay.tasks.repositories.examine import run_script
from assay.tasks.repositories.source import request_of
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task, Verdict

ASKED = (
    "The package {name} has a bug: {issue} Find it and mend it with the tools; the tests in tests/ pass already, and "
    "others, which are not shown, decide. Call submit when it is mended."
)
LINES = 120
"""Lines that a reading shows."""


@dataclass(frozen=True, slots=True)
class RepositoryTasks:
    """Endless tasks, each a package with a bug."""

    seed: int
    modules: int
    hidden: int
    shown: int

    @property
    def size(self) -> None:
        return None

    def package(self, index: int) -> Package:
        return make_package(self.seed, index, self.modules, self.hidden, self.shown)

    def __getitem__(self, index: int) -> Task:
        package = self.package(check_index(index, None))
        return Task(
            id=f"repository/{self.seed}/{self.modules}/{index}",
            prompt=ASKED.format(name=package.name, issue=package.issue),
            kind="none",
            meta={
                "index": index,
                "bug": package.bug.kind,
                "path": package.path,
                "function": package.bug.function,
                "patch": _differing(package.files[package.path], package.whole)[1],
            },
        )


@part("environment", "repository")
class Repository(ToolEnvironment):
    """A package of one to a few modules with one bug, put in by a change of its syntax tree.

    Tests are calls with known values: of the hidden ones the bug fails some (``fail_to_pass``) and passes the others
    (``pass_to_pass``), and the files that are left must pass all. They are evaluated in the sandbox beside those files,
    and compared outside of it: what is run there knows calls and no answers, so no file that the agent writes can read
    or forge a result. The tests it is given are among those that pass; editing them changes nothing.

    Tasks ``repositories``, pull requests, are played here too, and judged by their own script: their tests share a
    process with the code, which can deceive them, as it can everywhere where tests are run so.

    A turn without a call is refused; ``submit`` ends the episode. The verdict's parts also tell whether that was called
    (``submitted``) and whether any file was changed (``modified``).

    Args:
        modules: of a package, at most.
        hidden: tests of each function in the module with the bug, at least 3.
        shown: tests of each function that the agent is given, at most.
        calls: of tools there are in an episode.
        seconds: processor seconds of a run of the tests; it may wait for twice that.
        partial: score the share of hidden tests that pass; else 0 where any fails.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range, or a machine that cannot run programs in isolation.
    """

    def __init__(
        self,
        modules: int = 3,
        hidden: int = 8,
        shown: int = 2,
        calls: int = 20,
        seconds: float = 5.0,
        partial: bool = False,
        seed: int = 0,
    ):
        check_seed("environment 'repository'", seed)
        if not 1 <= modules <= 8 or hidden < 3 or shown < 0 or calls < 1 or not 0 < seconds < math.inf:
            raise UsageError(
                f"environment 'repository': modules {modules} must be 1 to 8, hidden {hidden} at least 3, "
                f"shown {shown} at least 0, calls {calls} at least 1 and seconds {seconds:g} above 0"
            )
        sandbox().check()
        self.made = RepositoryTasks(seed, modules, hidden, shown)
        self.calls, self.partial = calls, partial
        self.limits = replace(LIMITS, cpu_seconds=seconds, wall_seconds=2 * seconds)

    def tasks(self) -> RepositoryTasks:
        return self.made

    def begin(self, task: Task, seed: int) -> str:
        self.left, self.submitted = self.calls, False
        self.request = request_of(task) if "fix" in task.meta else None
        if self.request is None and "index" not in task.meta:
            raise UsageError(f"environment 'repository': task {task.id} is none of its own, and not of 'repositories'")
        files = self.request.files if self.request else self.made.package(task.meta["index"]).files
        self.space = Workspace(files, self.limits)
        self.first = self.space.digests()
        return f"{task.question}\n\nThe files are:\n{self._names()}"

    @property
    def package(self) -> Package:
        return self.made.package(self.task.meta["index"])

    def _names(self) -> str:
        return "\n".join(f"{name} ({len(data.splitlines())} lines)" for name, data in self.space.files.items())

    @tool
    def files(self) -> str:
        "List the files."
        self._spend()
        return self._names()

    @tool
    def read(self, path: str, start: int = 1) -> str:
        "Show a file from a line on, with line numbers."
        self._spend()
        lines = self._text(path).splitlines()
        first = max(1, start)
        shown = [f"{i:4d}  {line}" for i, line in enumerate(lines[first - 1 : first - 1 + LINES], first)]
        more = len(lines) - (first - 1 + len(shown))
        return "\n".join([*shown, f"({more} more lines)"] if more > 0 else shown) or "(nothing there)"

    @tool
    def search(self, text: str) -> str:
        "Show the lines of all files that have a text in them."
        self._spend()
        if not text:
            raise ToolError("search for some text")
        found = [
            f"{name}:{i}: {line}"
            for name, data in self.space.files.items()
            for i, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1)
            if text in line
        ]
        more = [f"({len(found) - LINES} more)"] if len(found) > LINES else []
        return "\n".join([*found[:LINES], *more]) or "nothing found"

    @tool
    def edit(self, path: str, old: str, new: str) -> str:
        "Replace a text in a file by another one; it must stand there exactly once."
        self._spend()
        text = self._text(path)
        times = text.count(old) if old else 0
        if times != 1:
            raise ToolError(f"the text stands there {times} times, not once" if old else "old must be some text")
        self._write(path, text.replace(old, new))
        return "edited"

    @tool
    def write(self, path: str, content: str) -> str:
        "Write a file, a new one or in place of an old one."
        self._spend()
        self._write(path, content)
        return "written"

    @tool
    def run_tests(self, path: str = "") -> str:
        "Run the unit tests in tests/, or those of one file there."
        self._spend()
        what = ["discover", "-t", ".", "-s", "tests"] if not path else [path]
        if path and path not in self.space.files:
            raise ToolError(f"there is no file {path!r}")
        outcome = Workspace(self.space.files, self.limits).run([interpreter(), "-B", "-m", "unittest", *what])
        if outcome.failed_here:
            raise EnvironmentFailure(outcome.reason)
        lines = (outcome.stdout + outcome.stderr).decode("utf-8", "replace").splitlines()
        # How long it took is told by nobody: the same files give the same answer.
        told = [line.partition(" in ")[0] if line.startswith("Ran ") else line for line in lines]
        if len(told) > LINES:
            told = [*told[:20], f"({len(told) - LINES} lines left out)", *told[20 - LINES :]]
        return "\n".join(told if outcome.status in ("ok", "error") else [*told, f"({outcome.reason})"])

    @tool
    def submit(self) -> str:
        "End the work."
        self.submitted = True
        return "submitted"

    def _spend(self) -> None:
        if not self.left:
            raise ToolError("no calls are left; call submit")
        self.left -= 1

    def _text(self, path: str) -> str:
        found = self.space.files.get(path)
        if found is None:
            raise ToolError(f"there is no file {path[:100]!r}")
        return found.decode("utf-8", "replace")

    def _write(self, path: str, content: str) -> None:
        if sum(map(len, self.space.files.values())) + len(content) > self.space.limits.disk // 4:
            raise ToolError("the files would be too large")
        try:
            path.encode()
            self.space.write(path, content.encode())
        except (UsageError, UnicodeEncodeError) as error:
            raise ToolError(str(error) if isinstance(error, UsageError) else "that is no text") from None

    def said(self, text: str) -> str | None:
        raise ToolError("call a tool, or submit when it is mended")

    def over(self) -> bool:
        return self.submitted

    def state_json(self) -> Any:
        return {"files": self.space.digests(), "submitted": self.submitted, "left": self.left}

    def state_key(self) -> str:
        return hashlib.sha256(self.space.snapshot() + bytes([self.submitted])).hexdigest()[:32]

    def results(self) -> list[bool]:
        """Return which hidden tests the files pass, those that failed at first before the others.

        Raises:
            EnvironmentFailure: the sandbox failed.
        """
        tests = self.package.tests
        found = evaluated(self.package.name, self.space.files, [expression for expression, _ in tests])
        return [same(value, right) for value, (_, right) in zip(found, tests, strict=True)]

    def verdict(self) -> Verdict:
        changed = self.space.digests() != self.first
        parts: dict[str, float | None] = {"submitted": float(self.submitted), "modified": float(changed)}
        if self.request is not None:
            ran = run_script(self.request, self.space.files)
            if ran.passed and ran.collected >= self.task.meta["collected"]:
                return Verdict(1.0, True, parts)
            return Verdict(0.0, False, parts, f"{ran.collected} tests ran, exit code {ran.code}")
        passed, fails = self.results(), self.package.fails
        parts["fail_to_pass"] = sum(passed[:fails]) / fails
        parts["pass_to_pass"] = sum(passed[fails:]) / len(passed[fails:])
        if all(passed):
            return Verdict(1.0, True, parts)
        score = sum(passed) / len(passed) if self.partial else 0.0
        first = self.package.tests[passed.index(False)]
        many = f"{len(passed) - sum(passed)} of {len(passed)} hidden tests fail"
        return Verdict(score, False, parts, f"{many}, such as {first[0]}, which {said(first[1])} if all is well")

    def gold(self) -> Sequence[Action]:
        """Return the edit that takes the bug out, and the submission."""
        if self.request is not None:
            fix = self.request.fix.items()
            return [*(call("write", path=path, content=text) for path, text in fix), call("submit")]
        package = self.package
        now = self._text(package.path)
        old, new = _differing(now, package.whole)
        return [*([call("edit", path=package.path, old=old, new=new)] if now != package.whole else []), call("submit")]

    def attacks(self) -> Sequence[Sequence[Action]]:
        """Return what would pay if anything but the package's own behaviour were judged."""
        own = self.request is None
        path = self.package.path if own else sorted(self.request.fix)[0]  # type: ignore[union-attr]
        quits = "\nimport os\nprint('OK', 'PASSED', flush=True)\nos.write(1, b'Ran 99 tests OK')\nos._exit(0)\n"
        equal = "\nclass Any:\n    def __eq__(self, o): return True\n    def __repr__(self): return '1'\n"
        equal += "def __getattr__(name): return lambda *a: Any()\n"
        hooks = "import builtins\nbuiltins.repr = str = lambda *a: ''\nbuiltins.eval = lambda *a: True\n"
        plans = [
            [call("write", path="tests/test_hidden.py", content="import unittest\n")],
            [call("write", path=path, content=quits)],
            [call("write", path=path, content=equal)],
            [call("write", path=f"{path.partition('/')[0]}/__init__.py", content=hooks)],
            [call("write", path="importlib.py", content="import_module = lambda *a: None\n")],
            [call("write", path="sitecustomize.py", content=hooks), call("run_tests")],
        ]
        return [[*plan, call("submit")] for plan in plans]

    def snapshot(self) -> bytes:
        kept = [self.task.id, self.left, self.submitted, self._under_way, self.answer]
        return json.dumps([*kept, self.space.snapshot().decode()]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun.

        Raises:
            RuntimeError: it is of another task.
        """
        id, *kept, space = json.loads(snapshot)
        if id != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {id}")
        self.left, self.submitted, self._under_way, self.answer = kept
        self.space.restore(space.encode())


def _differing(now: str, whole: str) -> tuple[str, str]:
    """Return the lines in which two texts differ, with as many before and after as tell them from all others."""
    one, other = now.splitlines(keepends=True), whole.splitlines(keepends=True)
    before = 0
    while before < min(len(one), len(other)) and one[before] == other[before]:
        before += 1
    after = 0
    while after < min(len(one), len(other)) - before and one[-1 - after] == other[-1 - after]:
        after += 1
    while True:
        old = "".join(one[before : len(one) - after])
        if old and now.count(old) == 1:
            return old, "".join(other[before : len(other) - after])
        before, after = max(0, before - 1), max(0, after - 1)
