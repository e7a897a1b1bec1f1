"""Tests that compare by themselves, run in a process apart from the program they judge.

``assert f(3) == 9`` needs both ``f``, which nobody trusts, and ``9``, which the program must not see. So two sandboxed
processes run side by side. The *tests' process* holds the test code, and in place of the program's names stand-ins;
calling one sends the arguments, through the host, to the *program's process*, and plain data comes back. Comparison,
and the report of what passed, happen in the tests' process. What a program can reach, patch, read or print is its own
process: overridden ``__eq__``, replaced builtins, ``sys.exit``, ``os._exit``, exit handlers, frames and forged output
all end there, or arrive as data that is compared like any other.

What cannot be done this way is reported as *unsupported*: tests that replace names in the program's module, derive
classes from its classes, hand it objects of their own classes, or pickle objects they made of its classes. Only tests
can cause that, never what a program gives them. Arguments are copies: a change that
the program makes to one is seen by the tests only where a call's value is not used (``sort(xs)`` on a line of its own).
"""

from __future__ import annotations

import functools
import json
import marshal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.sandbox import Dialogue, Limits, Outcome, Program, Sandbox
from assay.sandbox.unprotected import unprotected

INSIDE = Path(__file__).parent / "inside"
NAME = "assay.verify.code.inside"
MODES = ("check", "asserts", "unittest", "pytest", "doctest")
SERVING = ("wire", "serving")
TESTING = ("wire", "raised", "remote", "link", "testing")
PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
BEGINS = b'!{"begins":1}'
NAMING = (b'>{"do":"load"', b'>{"do":"export"')
MIB = 1 << 20
TESTS_LIMITS = Limits(cpu_seconds=20, wall_seconds=3600, memory=1024 * MIB, output=64 * MIB)
"""Of the tests' process, which is expected to do little, and to wait for the program as long as that may take."""
STARTER = """import marshal, sys, types
def start():
    with open('bundle', 'rb') as file:
        modules, arguments = marshal.loads(file.read())
    import os
    os.unlink('bundle')
    for name, code in modules:
        module = sys.modules[name] = types.ModuleType(name)
        exec(code, module.__dict__)
        parent, _, own = name.rpartition('.')
        if parent in sys.modules:
            setattr(sys.modules[parent], own, module)
    return module.main, arguments
main, arguments = start()
main(*arguments)
"""


@dataclass(slots=True)
class Report:
    """What came of the tests, as far as they were run.

    Attributes:
        tests: name, passed (``None``: skipped by the tests themselves), what was said, whether the program ``raised``
            or ``ended``, and how, if it did; in the order they ended.
        count: tests there are, if that is known and more than were run.
        ended: whether the tests were run to the end that was asked for.
        problem: why the program could not be loaded.
        unsupported: what the tests do that needs one process for both.
        broken: what is wrong with the tests themselves.
        cpu_seconds, memory: of all processes of the program together, and the most of one.
        program, judge: how the two processes ended; ``program`` the last one that ended by itself, if any did.
    """

    tests: list[tuple[str, bool | None, str, str, Outcome | None]] = field(default_factory=list)
    count: int = 0
    ended: bool = False
    problem: str = ""
    unsupported: str = ""
    broken: str = ""
    program: Outcome | None = None
    judge: Outcome | None = None
    answers: int = 0
    cpu_seconds: float = 0.0
    memory: int = 0


@functools.cache
def _modules(names: tuple[str, ...]) -> list[tuple[str, Any]]:
    # The package itself first: a module is imported from it by name.
    return [(NAME, compile("", NAME, "exec"))] + [
        (f"{NAME}.{name}", compile((INSIDE / f"{name}.py").read_text(), f"<{name}>", "exec", dont_inherit=True))
        for name in names
    ]


def _bundle(names: tuple[str, ...], *arguments: Any) -> dict[str, bytes]:
    return {"bundle": marshal.dumps((_modules(names), arguments))}


def run_apart(
    plan: Mapping[str, Any],
    program: Program,
    limits: Limits,
    box: Sandbox,
    files: Mapping[str, str | bytes] = {},
    total: float = 0.0,
) -> Report:
    """Run the tests that ``plan`` describes, see :class:`~assay.verify.code.inside.testing.Session`, on ``program``.

    Args:
        limits: of each process of the program; there is a second one only after one ended within a test and if
            ``plan["stop"]`` is false. Its time is for each test, where they are told apart as they begin; one
            ``check`` is a test.
        total: processor seconds of each process of the program.
        files: further files for the tests' process.
    """
    report = Report()
    packages = tuple(plan.get("packages", ())) + (PYTEST if plan["mode"] == "pytest" else ())
    needed = (*TESTING[:-1], "serving", "local", "testing") if "shared" in plan else TESTING
    tests = Program(
        STARTER, files={**files, **_bundle((*needed, f"testing_{plan['mode']}"), dict(plan))}, packages=packages
    )
    candidate = Program(
        STARTER,
        files={**program.files, **_bundle(SERVING, program.source, plan["module"])},
        packages=program.packages,
    )
    limits = replace(limits, output=max(limits.output, MIB))

    again = False

    def serve(judge: Dialogue) -> None:
        """Start a program whenever the tests' process asks for one."""
        nonlocal again
        while (line := judge.readline()) or not judge.ended:
            if line.startswith(b"!"):
                if not _note(report, line):
                    continue
                again = True
                while again:
                    again = False
                    outcome = box.interact(candidate, functools.partial(relay, judge), limits, total)
                    report.cpu_seconds += outcome.cpu_seconds
                    report.memory = max(report.memory, outcome.memory)
                    if outcome.status != "ok" or report.program is None:
                        report.program = outcome
                    if outcome.failed_here:
                        return
            elif line:
                judge.writeline(b'{"dead":1}')

    def relay(judge: Dialogue, running: Dialogue) -> None:
        """Pass requests and replies on, one after the other, until the tests or the program end."""
        nonlocal again
        while (line := judge.readline()) or not judge.ended:
            if line == BEGINS:
                running.renew()
                continue
            if line.startswith(b"!"):
                if _note(report, line):
                    # What the program says is no longer believed: another process of it is to go on.
                    again = True
                    return
                continue
            if not line:
                return
            running.writeline(line[1:])
            reply = running.readline()
            if not reply and running.ended:
                # The tests' process is told once the outcome is known, see below.
                judge.writeline(b'{"dead":1}')
                return
            # That the program has a name can lead no test astray.
            report.answers += not (line.startswith(NAMING) and reply.startswith(b'{"v"') and len(reply) < 4096)
            judge.writeline(reply)

    report.judge = judges().interact(tests, serve, TESTS_LIMITS)
    return report


def _note(report: Report, line: bytes) -> bool:
    """Take down what the tests' process says; return whether it asks for a program."""
    said = json.loads(line[1:])
    if "test" in said:
        ended = report.program if said["how"] == "ended" else None
        report.tests.append((said["test"], said["ok"], said["said"], said["how"], ended))
    elif "count" in said:
        report.count = said["count"]
    elif "end" in said:
        report.ended = True
    report.problem = said.get("problem", report.problem)
    report.unsupported = said.get("unsupported", report.unsupported)
    report.broken = said.get("broken", report.broken)
    return "start" in said


_JUDGES: Sandbox | None = None
_LOCK = threading.Lock()


def judges() -> Sandbox:
    """A pool for tests' processes alone: each holds its place while its program waits for one in the other pool."""
    global _JUDGES
    with _LOCK:
        if _JUDGES is None or _JUDGES.unsafe != unprotected():
            _JUDGES = Sandbox()
        return _JUDGES
