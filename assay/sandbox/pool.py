"""A pool of zygotes, and everything a program can be asked to do in it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from assay.errors import UsageError
from assay.sandbox import cgroup, jobs
from assay.sandbox.compiled import COMPILING, Compiled
from assay.sandbox.confine import INSIDE, Kind, SandboxUnavailable, bubblewrap, visible
from assay.sandbox.dialogue import Dialogue
from assay.sandbox.inside import codec
from assay.sandbox.languages import language
from assay.sandbox.serve import serve
from assay.sandbox.types import MIB, CallOutcome, Limits, Outcome, Program
from assay.sandbox.unprotected import unprotected
from assay.sandbox.worker import Lost, Worker

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
DEFAULT = Limits()
WARNING = "warning: running a program unprotected (unsafe_no_sandbox)"
ATTEMPTS = 3
"""Zygotes a program is tried on when they are lost; a program cannot bring one down."""
NEEDED = (
    "running programs needs user namespaces (sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; in Docker "
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
)


class Sandbox:
    """Runs programs that nobody trusts, at most ``size`` at a time; thread-safe; a context manager.

    Processes start when first needed. Every program has its own user, process, mount, IPC and host-name namespaces
    inside bubblewrap's, which has no network; an empty ``/tmp``; nothing of the host's environment, descriptors and
    capabilities; limits; and a system-call filter. Nothing of it is left when its answer is there.

    What a program does is repeatable as far as it depends on Python: hashes of strings and the first state of
    ``random`` are the same every time.

    Where this process can make control groups (version 2 with the memory and pids controllers delegated, version 1 with
    their folders writable), all processes of a program together are held to its memory and process limits by the kernel
    (:attr:`cgroups`). Elsewhere each process is, and their sum is looked at 50 times a second.

    Args:
        size: programs at a time; the number of cores unless given.
        unsafe_no_sandbox: run programs *unprotected*, with limits and the filter only, and say so on standard error
            each time: for programs you wrote yourself, on machines without namespaces. Unless given, what was said
            for the whole command, see :func:`~assay.sandbox.unprotected.run_unprotected`.

    Raises:
        SandboxUnavailable: from :meth:`check` or the first use, where this machine cannot protect itself.
    """

    def __init__(self, size: int | None = None, unsafe_no_sandbox: bool | None = None):
        if size is not None and size < 1:
            raise UsageError(f"size = {size}: a sandbox runs at least one program at a time")
        self.size, self._warns = size or CORES, bool(unsafe_no_sandbox)
        self.unsafe = unprotected() if unsafe_no_sandbox is None else unsafe_no_sandbox
        self._nested: bool | None = False if self.unsafe else None
        self._lock = threading.RLock()
        self._slots = threading.BoundedSemaphore(self.size)
        self._idle: dict[Kind, deque[Worker]] = {}
        self._compiled = Compiled()
        _ALL.add(self)

    @property
    def cgroups(self) -> bool:
        """Whether the kernel bounds the memory of all of a program's processes together."""
        return cgroup.place() is not None

    def check(self) -> None:
        """Try the walls from inside, once; raise SandboxUnavailable with one line if they do not stand."""
        with self._lock:
            if self._nested is not None:
                return
            # Where there is none, nothing else is worth saying.
            bubblewrap()
            reasons = []
            source = (INSIDE / "probe.py").read_text()
            job = jobs.script(Program(source), replace(DEFAULT, processes=8, cpu_seconds=10))
            for nested in (True, False):
                try:
                    worker = Worker(Kind(), nested, place=cgroup.place())
                except SandboxUnavailable as error:
                    reasons.append(str(error))
                    continue
                try:
                    outcome, _ = serve(worker, job, b"", replace(DEFAULT, processes=8, cpu_seconds=10))
                except Lost as lost:
                    outcome = Outcome("infrastructure", reason=str(lost))
                finally:
                    worker.end()
                if outcome.status == "ok" and outcome.stdout == b"walled":
                    self._nested = nested
                    return
                said = outcome.stdout.decode("utf-8", "replace") or outcome.reason
                reasons.append(f"the sandbox does not hold: {said}")
            raise SandboxUnavailable(f"{reasons[0]}; {NEEDED}")

    def run(self, program: Program, stdin: bytes | str = b"", limits: Limits = DEFAULT) -> Outcome:
        """Run ``program`` with ``stdin`` to its end."""
        job, kind, limits = self._job(program, limits)
        return job if isinstance(job, Outcome) else self._do(kind, job, jobs.to_bytes(stdin), limits)[0]

    def run_many(
        self,
        program: Program,
        stdins: Sequence[bytes | str],
        limits: Limits = DEFAULT,
        stop: Callable[[Outcome], bool] | None = None,
    ) -> list[Outcome]:
        """Compile ``program`` once and run it for each of ``stdins``, in order; end after one ``stop`` is true of."""
        job, kind, limits = self._job(program, limits)
        if isinstance(job, Outcome):
            return [job]
        outcomes: list[Outcome] = []
        for stdin in stdins:
            outcomes.append(self._do(kind, job, jobs.to_bytes(stdin), limits)[0])
            if stop is not None and stop(outcomes[-1]):
                break
        return outcomes

    def call(
        self,
        program: Program,
        function: str,
        calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
        limits: Limits = DEFAULT,
        method_of: str = "",
    ) -> CallOutcome:
        """Run a Python ``program`` and call its ``function`` with each ``(args, kwargs)``, in one process, in order.

        ``function`` is a name, or ``"Solution.method"``: then each call has a new ``Solution()``. It may also be a
        method of the class ``method_of``, where the program has one and defines no function of that name.
        Arguments and values are plain data (see :mod:`assay.sandbox.inside.codec`). ``limits`` are for all calls
        together.
        """
        if program.language != "python":
            raise UsageError(f"functions can be called in Python programs, not in {program.language}")
        jobs.check_name(function)
        job = jobs.script(program, limits) | {"mode": "call", "function": function, "method_of": method_of}
        job["calls"] = codec.dumps([[list(args), dict(kwargs)] for args, kwargs in calls])
        outcome, result = self._do(Kind(program.packages), job, b"", limits)
        done = tuple(jobs.read_calls(result, len(calls)))
        if outcome.status == "ok" and len(done) < len(calls):
            reason = f"the program ended after {len(done)} of {len(calls)} calls"
            outcome = replace(outcome, status="error", reason=reason)
        return CallOutcome(done, outcome)

    def interact(
        self, program: Program, interactor: Callable[[Dialogue], None], limits: Limits = DEFAULT, total: float = 0.0
    ) -> Outcome:
        """Run ``program`` while ``interactor`` talks to its standard input and output.

        ``interactor`` runs in this thread, and what it finds out is its own affair. Its reads end when the program
        does, so it needs no clock. What it raises is raised here once the program has ended. It may renew the
        program's time, as often as it likes if all together is at most ``total`` processor seconds.
        """
        job, kind, limits = self._job(program, limits)
        if isinstance(job, Outcome):
            return job
        job["interactive"] = True
        if total:
            job["limits"] = jobs.kernel_limits(replace(limits, cpu_seconds=min(max(total, limits.cpu_seconds), 3600.0)))
        return self._do(kind, job, b"", limits, interactor, total)[0]

    def command(
        self,
        argv: Sequence[str],
        files: Mapping[str, str | bytes] | None = None,
        limits: Limits = COMPILING,
        stdin: bytes | str = b"",
        outputs: Sequence[str] = (),
        readable: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        packages: Sequence[str] = (),
        tree: str = "",
        made: Mapping[str, tuple[bytes, int]] | None = None,
    ) -> Outcome:
        """Run a tool of this machine on ``files``, in the folder that holds them, and bring back ``outputs``.

        Args:
            argv: the tool, looked for in ``PATH``, and its arguments.
            files: content by relative path.
            outputs: relative paths of files, and of folders with what is in them, to return in ``Outcome.files``.
            readable: further folders of this machine the tool may read (its own, outside ``/usr``); it finds them where
                :func:`~assay.sandbox.confine.visible` says.
            environment: added to the usual one.
            packages: Python packages it may import, in ``/sandbox/packages``.
            tree: a folder beside the files that is wanted back whole, as ``Outcome.tree``, also where a limit ends the
                tool; ``outputs`` are not looked at then.
            made: what is in that folder: content and mode by path.
        """
        tool = shutil.which(argv[0])
        if tool is None:
            raise UsageError(f"{argv[0]!r} is not installed on this machine")
        kind = Kind(tuple(packages), True, tuple(sorted({os.path.abspath(path) for path in readable})))
        tool = tool if tool.startswith(("/usr/bin/", "/bin/")) else visible(os.path.realpath(tool))
        job = jobs.start([tool, *argv[1:]], files or {}, limits, outputs, True, (), environment, tree, made)
        return self._do(kind, job, jobs.to_bytes(stdin), limits)[0]

    def _job(self, program: Program, limits: Limits) -> tuple[dict[str, Any] | Outcome, Kind, Limits]:
        """Return what a zygote is told, or how compiling failed."""
        chosen = language(program.language)
        if program.options and (chosen is None or not chosen.compile):
            raise UsageError(f"compiler options are for languages that are compiled, and {program.language} is not")
        if chosen is None:
            return jobs.script(program, limits), Kind(program.packages), limits
        if program.packages:
            raise UsageError(f"packages are for Python programs, not {program.language}")
        kind = Kind(tools=True, readable=chosen.folders())
        files: dict[str, str | bytes] = {**program.files, **program.inputs}
        executable: tuple[str, ...] = ()
        if chosen.compile:
            made = self._compiled.made(program, chosen, self.command)
            if isinstance(made, Outcome):
                return made, kind, limits
            files, executable = {**files, **made}, ("program",)
        else:
            files[chosen.file_of(program.source)] = program.source
        numbers = {"megabytes": limits.memory // MIB, "stack": limits.stack >> 10}
        first, *rest = chosen.words(chosen.run, program.source, numbers=numbers)
        first = visible(os.path.realpath(first)) if chosen.folders() and not first.startswith("./") else first
        argv = [first, *rest, *program.args]
        return jobs.start(argv, files, limits, (), chosen.reserves, executable, chosen.environment), kind, limits

    def _do(
        self,
        kind: Kind,
        job: dict[str, Any],
        stdin: bytes,
        limits: Limits,
        interactor: Callable[[Dialogue], None] | None = None,
        total: float = 0.0,
    ) -> tuple[Outcome, bytes]:
        """Run a job on a zygote, on another one if that is lost; return the outcome and what was written as results."""
        if self._warns:
            print(WARNING, file=sys.stderr)
        self.check()
        reason = ""
        with self._slots:
            for _ in range(ATTEMPTS):
                try:
                    worker = self._worker(kind)
                except SandboxUnavailable as error:
                    return Outcome("infrastructure", reason=str(error)), b""
                except OSError as error:
                    return Outcome("infrastructure", reason=f"the sandbox did not start: {error}"), b""
                whole = False
                try:
                    answered = serve(worker, job, stdin, limits, interactor, total)
                    whole = True
                    return answered
                except Lost as lost:
                    reason = str(lost)
                    if worker.ran_out():
                        return Outcome("memory", reason=f"it took more than {limits.memory >> 20} MiB of memory"), b""
                    if interactor is not None:
                        break
                except OSError as error:
                    return Outcome("infrastructure", reason=f"the host is out of resources: {error}"), b""
                finally:
                    if whole and self._nested:
                        self._idle.setdefault(kind, deque()).append(worker)
                    else:
                        worker.end()
        return Outcome("infrastructure", reason=reason), b""

    @property
    def places(self) -> threading.BoundedSemaphore:
        """Held by every program while it runs."""
        return self._slots

    def worker(self, kind: Kind) -> Worker:
        """Return a zygote for a program that lasts, to be ended by who asks; raise SandboxUnavailable or OSError."""
        if self._warns:
            print(WARNING, file=sys.stderr)
        self.check()
        return self._worker(kind)

    def _worker(self, kind: Kind) -> Worker:
        idle = self._idle.setdefault(kind, deque())
        while True:
            try:
                worker = idle.pop()
            except IndexError:
                self._make_room(kind)
                return Worker(kind, bool(self._nested), not self.unsafe, cgroup.place())
            if worker.alive:
                return worker
            worker.end()

    def _make_room(self, kind: Kind) -> None:
        """End idle zygotes of other kinds while there are many: each holds an interpreter's memory."""
        others = [(other, idle) for other, idle in list(self._idle.items()) if other != kind]
        while sum(len(idle) for _, idle in others) >= 4 * self.size:
            largest = max(others, key=lambda item: len(item[1]))[1]
            with suppress(IndexError):
                largest.popleft().end()

    def close(self) -> None:
        """End the idle zygotes; the next program starts new ones."""
        for idle in list(self._idle.values()):
            while idle:
                with suppress(IndexError):
                    idle.pop().end()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        """In a forked child: leave the parent's zygotes to the parent."""
        for idle in self._idle.values():
            for worker in idle:
                worker.forget()
        self._idle = {}
        self._compiled.forget()
        self._lock = threading.RLock()
        self._slots = threading.BoundedSemaphore(self.size)


_ALL: weakref.WeakSet[Sandbox] = weakref.WeakSet()
_SHARED: Sandbox | None = None
_SHARING = threading.Lock()


def sandbox() -> Sandbox:
    """Return the pool that everything in this process shares, made when first asked for."""
    global _SHARED
    with _SHARING:
        if _SHARED is None or _SHARED.unsafe != unprotected():
            if _SHARED is not None:
                _SHARED.close()
            _SHARED = Sandbox()
        return _SHARED


def _after_fork() -> None:
    global _SHARING
    _SHARING = threading.Lock()
    for one in _ALL:
        one._forget()


def _at_exit() -> None:
    for one in _ALL:
        one.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
