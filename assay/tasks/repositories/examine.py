"""Is a pull request a task? Its tests must fail without the fix and pass with it, and there must be tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from assay.errors import RunError
from assay.sandbox.confine import interpreter
from assay.sandbox.workspace import Workspace

MARKER = re.compile(r"^OPENSWE_EXIT_CODE=(\d+)\s*$", re.MULTILINE)
SCRIPT = '"$PYTHON" -B -m unittest -v {tests}\necho "OPENSWE_EXIT_CODE=$?"\n'
"""Runs the tests that the pull request changes and no others, and says how they ended."""
_COLLECTED = re.compile(r"^Ran (\d+) tests? in |^collected (\d+) items?|(\d+) (?:passed|failed)", re.MULTILINE)
_FIXED = re.compile(r"OPENSWE_EXIT_CODE=\d|^\s*exit\s+0\s*$", re.MULTILINE)
_MISSING = re.compile(r"ModuleNotFoundError: No module named|command not found|: not found$", re.MULTILINE)

Part = Literal["", "script", "environment", "task"]
"""Who has to mend it: who writes the script, who builds the environment, or nobody, the task being of no use."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a pull request changes.

    Attributes:
        issue: what was wrong, as it was reported.
        files: of the repository before it, by relative path.
        fix: files that the fix changes or adds, as they are after it.
        tests: files of tests that it changes or adds.
        script: of bash; prints ``OPENSWE_EXIT_CODE=`` and the tests' exit code. By default :data:`SCRIPT`.
    """

    id: str
    issue: str
    files: Mapping[str, str]
    fix: Mapping[str, str]
    tests: Mapping[str, str]
    script: str = ""

    @property
    def command(self) -> str:
        names = " ".join(path.removesuffix(".py").replace("/", ".") for path in sorted(self.tests))
        return self.script or SCRIPT.format(tests=names)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended: the exit code it told (``None`` for none), and how many tests were collected."""

    code: int | None
    collected: int
    output: str

    @property
    def passed(self) -> bool:
        """Whether tests ran, and all passed."""
        return self.code == 0 and self.collected > 0


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found: accepted if ``reason`` is empty; else who has to mend it. ``collected`` tests with the fix; the
    ``outputs`` of both runs, where they came to that."""

    reason: str
    part: Part = ""
    collected: int = 0
    outputs: tuple[str, str] = field(default=("", ""), compare=False)

    @property
    def accepted(self) -> bool:
        return not self.reason


def run_script(request: PullRequest, files: Mapping[str, str | bytes]) -> Ran:
    """Run the script on ``files``, the request's tests over them, in the sandbox.

    Raises:
        RunError: the sandbox failed.
        SandboxUnavailable: this machine cannot run programs in isolation.
    """
    space = Workspace({**files, **request.tests})
    outcome = space.run(["bash", "-c", request.command], environment={"PYTHON": interpreter()})
    if outcome.failed_here:
        raise RunError(f"the sandbox failed on {request.id}: {outcome.reason}")
    text = (outcome.stdout + b"\n" + outcome.stderr).decode("utf-8", "replace")
    told = MARKER.findall(text)
    counts = [int(next(filter(None, found))) for found in _COLLECTED.findall(text)]
    return Ran(int(told[-1]) if told and outcome.status in ("ok", "error") else None, sum(counts[:1]), text)


def examine(request: PullRequest) -> Examined:
    """Run the script twice and look at it, whatever it says; see :class:`Examined`.

    By rule: with the tests alone its exit code must not be 0, with the fix as well it must be 0; without the marker it
    has failed. Then, also where that holds: it must not tell a code that stands in it, nor end well by itself, and
    tests must have been collected.
    """
    if not request.issue.strip() or not request.fix or set(request.fix) & set(request.tests):
        return Examined("it has no issue, or no fix apart from its tests", "task")
    if not request.tests:
        return Examined("it has no tests", "task")
    if _FIXED.search(request.command):
        return Examined("the script tells an exit code that stands in it", "script")
    before, after = (run_script(request, {**request.files, **more}) for more in ({}, request.fix))
    return replace(_of(before, after), outputs=(before.output, after.output))


def _of(before: Ran, after: Ran) -> Examined:
    if before.code is None or after.code is None:
        return Examined("the script does not tell an exit code", "script")
    if after.code != 0 and _MISSING.search(after.output):
        return Examined("something is missing that the tests need", "environment")
    if after.code != 0:
        return Examined("its tests fail with the fix", "task")
    if not after.collected:
        return Examined("no test was collected", "script")
    if before.code == 0:
        return Examined("its tests pass without the fix", "task")
    return Examined("", "", after.collected)
