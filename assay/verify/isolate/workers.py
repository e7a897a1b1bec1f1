"""Running functions on untrusted answers in processes that can be killed.

Parsing ``9**9**9**9`` must not stop a training run. A check that may hang, crash or eat memory is a function of a
module; :class:`Workers` runs it in a few long-lived processes with a kernel timer and a memory limit on each call.
What goes wrong costs that one call, and comes back as a :class:`Failure` with its reason: a verifier abstains on it.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import signal
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from assay.verify.isolate.handing import Queue
from assay.verify.isolate.process import SPENT, Process, Request

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
MOST = 4096
"""Processes of a pool, at most."""

WALL = 10.0
"""The wall clock may run this many times the processor time allowed: a loaded machine does not cut a call short."""
RECYCLE = 20_000
"""Calls after which a process is replaced, so that what leaks in a library does not add up."""


Cause = Literal["time", "memory", "raised", "crashed", "wall", "killed", "unsent", "unstarted", "unloaded", "closed"]
"""What kept a call from giving a value.

Its own doing: it spent its processor ``time`` or ``memory``, ``raised``, or ``crashed`` its process (a segmentation
fault, an abort, leaving). Not its own: the ``wall`` clock ran out, as it may on a crowded machine, somebody ``killed``
the process, the arguments could not be sent (``unsent``), no process could be started (``unstarted``), the module could
not be imported or prepared in it (``unloaded``), or the workers were ``closed``.
"""
CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP})


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no value, with the reason for people and the cause for programs."""

    reason: str
    cause: Cause = "raised"

    @property
    def timed_out(self) -> bool:
        """Whether the call was stopped by a clock."""
        return self.cause in ("time", "wall")

    @property
    def overspent(self) -> bool:
        """Whether it was stopped for its own processor time or memory, and not by a crowded machine."""
        return self.cause in ("time", "memory")

    @property
    def own(self) -> bool:
        """Whether the call brought it on itself, so that a call with other arguments may fare better."""
        return self.cause in ("time", "memory", "raised", "crashed")


CLOSED = Failure("the workers were closed", "closed")


@dataclass(frozen=True, slots=True)
class _Call:
    function: str
    arguments: tuple[Any, ...]
    seconds: float
    wall: float

    def request(self) -> Request | Failure:
        try:
            return pickle.dumps((self.function, self.arguments)), self.seconds, self.wall
        except Exception as error:
            return Failure(f"the arguments cannot be sent to a worker: {error}", "unsent")


class Workers:
    """At most ``size`` processes that run functions of one module; started when first needed, then kept.

    Safe to use from any thread, and after a fork. The module is imported once in each process and may define
    ``prepare(*setup)``, called before the limits are set; its functions take what pickle holds and return what JSON
    holds. What they print goes nowhere. A process that has gone wrong is replaced, and so is each one now and then.

    Args:
        module: importable name, e.g. ``"assay.verify.puzzles.gym_scorer"``.
        size: processes; the number of cores unless given.
        memory: bytes of address space of each process.
        setup: what ``prepare`` is given, as far as pickle holds it.
        writes: whether the functions may write files; programs started by those that may can raise ``memory``.
    """

    def __init__(
        self,
        module: str,
        size: int | None = None,
        memory: int = 4 << 30,
        setup: tuple[Any, ...] = (),
        writes: bool = False,
    ):
        self.module, self.size, self.memory = module, size or CORES, memory
        self.setup, self.writes = setup, writes
        self._reset()
        _ALL.add(self)

    def _reset(self) -> None:
        self._idle: deque[Process] = deque()
        self._busy: set[Process] = set()
        self._slots = threading.BoundedSemaphore(self.size)
        self._lock = threading.Lock()
        self._queue = Queue(self._run, self.size, f"{self.module} workers")
        self._closings = 0

    def call(self, function: str, *arguments: Any, seconds: float, wall: float | None = None) -> Any:
        """Return ``module.function(*arguments)``, or a :class:`Failure`.

        ``seconds`` of processor time are allowed, and ``wall`` of wall time (:data:`WALL` times as much unless given);
        both are counted from the start of the call in its process, not from when it was asked for.
        """
        return self._run([_Call(function, arguments, seconds, wall or WALL * seconds)])[0]

    def submit(self, function: str, *arguments: Any, seconds: float, wall: float | None = None) -> Future[Any]:
        """Do the same beside the caller. Calls that wait are sent to a process many at once, if they are quick."""
        return self._queue.put([_Call(function, arguments, seconds, wall or WALL * seconds)])[0]

    def map(
        self,
        function: str,
        calls: Iterable[tuple[Any, ...]],
        seconds: float,
        wall: float | None = None,
        ahead: int | None = None,
    ) -> Iterator[Any]:
        """Yield ``module.function(*arguments)`` or a :class:`Failure` for each of ``calls``, in order, in parallel.

        ``calls`` is read at most ``ahead`` further than results are taken, so it may be endless; as far as that only
        while a slow call holds up those behind it.
        """
        pieces = (_Call(function, arguments, seconds, wall or WALL * seconds) for arguments in calls)
        return self._queue.map(pieces, ahead)

    def _run(self, calls: list[_Call]) -> list[Any]:
        """Run calls in one process after the other: one that dies costs the call it was on, and the rest go on."""
        results: list[Any] = [call.request() for call in calls]
        todo = [i for i, request in enumerate(results) if not isinstance(request, Failure)]
        with self._slots:
            closings = self._closings
            while todo:
                lines, failure, whole = self._ask([results[i] for i in todo], closings)
                for i, line in zip(todo, lines, strict=False):
                    reply = json.loads(line)
                    results[i] = reply["value"] if "value" in reply else Failure(reply["error"], reply["cause"])
                todo = todo[len(lines) :]
                if failure is not None:
                    struck = len(todo) if whole else 1
                    for i in todo[:struck]:
                        results[i] = failure
                    todo = todo[struck:]
        return results

    def _ask(self, requests: list[Request], closings: int) -> tuple[list[bytes], Failure | None, bool]:
        """Return the replies that came, a failure if the process died on the next, and whether it strikes all."""
        try:
            process = self._take(closings)
        except OSError as error:
            return [], Failure(f"no worker process could be started: {error}", "unstarted"), True
        if process is None:
            return [], CLOSED, True
        lines: list[bytes] = []
        done = spent = False
        try:
            lines = process.ask(requests)
            spent = lines[-1:] == [SPENT]
            done = len(lines) == len(requests)
        finally:
            with self._lock:
                self._busy.discard(process)
                keep = done and not spent and process.served < RECYCLE and closings == self._closings
                if keep:
                    self._idle.append(process)
            code = None if keep else process.end()
        if done or spent:
            return lines, None, False
        if closings != self._closings:
            return lines, CLOSED, True
        return lines, _death(code or 0, *requests[len(lines)][1:]), False

    def _take(self, closings: int) -> Process | None:
        while True:
            with self._lock:
                if closings != self._closings:
                    return None
                process = self._idle.pop() if self._idle else None
                if process is not None and process.alive:
                    self._busy.add(process)
                    return process
            if process is not None:
                process.end()
                continue
            process = self._start()
            with self._lock:
                self._idle.append(process)

    def _start(self) -> Process:
        try:
            return Process(self.module, self.setup, self.memory, self.writes)
        except OSError:
            # Once more, as it may have been struck from outside; a module that ends every process fails again.
            return Process(self.module, self.setup, self.memory, self.writes)

    def close(self) -> None:
        """End the processes; calls under way end as failures, and the next call starts new processes."""
        with self._lock:
            self._closings += 1
            for process in self._busy:
                process.kill()
            idle, self._idle = self._idle, deque()
        for process in idle:
            process.end()
        self._queue.clear(CLOSED)

    def _forget(self) -> None:
        """In a forked child: leave the parent's processes to the parent."""
        for process in [*self._idle, *self._busy]:
            process.forget()
        self._reset()


def _death(code: int, seconds: float, wall: float) -> Failure:
    if code == -signal.SIGPROF:
        return Failure(f"took longer than {seconds:g} s", "time")
    if code == -signal.SIGALRM:
        return Failure(f"took longer than {wall:g} s by the wall clock", "wall")
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Failure(f"its process was ended by {name}", "crashed" if -code in CRASHES else "killed")
    return Failure(f"its process ended with status {code}", "crashed")


_ALL: weakref.WeakSet[Workers] = weakref.WeakSet()


def _after_fork() -> None:
    for workers in _ALL:
        workers._forget()


def _at_exit() -> None:
    for workers in _ALL:
        workers.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
