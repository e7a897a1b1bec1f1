"""Running functions on untrusted answers in processes that can be killed.

Parsing ``9**9**9**9`` must not stop a training run. A check that may hang, crash or eat memory is a function of a
module; :class:`Workers` runs it in a few long-lived processes with a kernel timer and a memory limit on each call.
What goes wrong costs that one call, and comes back as a :class:`Failure` with its reason: a verifier abstains on it.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
WALL = 10.0
"""The wall clock may run this many times the processor time allowed: a loaded machine does not cut a call short."""
RECYCLE = 20_000
"""Calls after which a worker is replaced, so that what leaks in a library does not add up."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no value: it raised, took too long, or its process died.

    ``timed_out`` tells a call that was stopped from one that failed by itself.
    """

    reason: str
    timed_out: bool = False


class Workers:
    """At most ``size`` processes that run functions of one module; started when first needed, then kept.

    Safe to use from any thread, and after a fork. The module is imported once in each process and may define
    ``prepare()``, called before the limits are set; its functions take what pickle holds and return what JSON holds.
    They cannot write files, and what they print goes nowhere.

    Args:
        module: importable name, e.g. ``"assay.verify.gym_scorer"``.
        size: processes; the number of cores unless given.
        memory: bytes of address space of each process.
    """

    def __init__(self, module: str, size: int | None = None, memory: int = 4 << 30):
        self.module, self.size, self.memory = module, size or CORES, memory
        self._idle: deque[_Worker] = deque()
        self._slots = threading.BoundedSemaphore(self.size)
        _ALL.add(self)

    def call(self, function: str, *arguments: Any, seconds: float) -> Any:
        """Return ``module.function(*arguments)``, or a :class:`Failure`.

        ``seconds`` of processor time are allowed, and :data:`WALL` times as much of wall time; both are counted from
        the start of the call in the worker, not from when it was asked for.
        """
        with self._slots:
            return self._ask(function, arguments, seconds)

    def map(self, function: str, calls: Iterable[tuple[Any, ...]], seconds: float, chunk: int = 64) -> Iterator[Any]:
        """Yield ``module.function(*arguments)`` or a :class:`Failure` for each of ``calls``, in order, in parallel.

        ``calls`` is read a bounded way ahead, so it may be endless. ``seconds`` is for each call.
        """
        remaining = iter(calls)
        pending: deque[Future[list[Any]]] = deque()
        threads = ThreadPoolExecutor(self.size)
        try:
            while True:
                while len(pending) < 4 * self.size and (some := list(itertools.islice(remaining, chunk))):
                    pending.append(threads.submit(self._chunk, function, some, seconds))
                if not pending:
                    return
                yield from pending.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _chunk(self, function: str, calls: list[tuple[Any, ...]], seconds: float) -> list[Any]:
        with self._slots:
            return [self._ask(function, arguments, seconds) for arguments in calls]

    def _ask(self, function: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        try:
            request = pickle.dumps((function, arguments, seconds, WALL * seconds))
        except Exception as error:
            return Failure(f"the arguments cannot be sent to a worker: {error}")
        worker = self._worker()
        reply = None
        try:
            reply = worker.ask(request)
        finally:
            if reply is not None and worker.served < RECYCLE:
                self._idle.append(worker)
            else:
                code = worker.end()
        if reply is None:
            return _death(code, seconds)
        result = json.loads(reply)
        return result["value"] if "value" in result else Failure(result["error"])

    def _worker(self) -> _Worker:
        while True:
            try:
                worker = self._idle.pop()
            except IndexError:
                return _Worker(self.module, self.memory)
            if worker.alive:
                return worker
            worker.end()

    def close(self) -> None:
        """End the idle processes; the next call starts new ones."""
        while True:
            try:
                self._idle.pop().end()
            except IndexError:
                return

    def _forget(self) -> None:
        """In a forked child: leave the parent's processes to the parent."""
        for worker in self._idle:
            worker.forget()
        self._idle.clear()
        self._slots = threading.BoundedSemaphore(self.size)


class _Worker:
    """One process running :mod:`assay.verify.isolate_worker`."""

    def __init__(self, module: str, memory: int) -> None:
        script = os.path.join(os.path.dirname(__file__), "isolate_worker.py")
        self.served = 0
        self.process = subprocess.Popen(
            # The file and not -m, with -P: nothing beside it or in the working folder is imported by mistake.
            [sys.executable, "-P", "-W", "ignore", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin = self.process.stdin.fileno()
        self.output = os.fdopen(self.process.stdout.fileno(), "rb", closefd=False)
        # A worker that cannot import its module answers every call with the reason.
        self.ask(pickle.dumps((sys.path, module, memory)))

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, request: bytes) -> bytes | None:
        """Return the reply to a pickled request, ``None`` if the process ended without one."""
        self.served += 1
        try:
            view = memoryview(request)
            while view:
                view = view[os.write(self.stdin, view) :]
        except BrokenPipeError:
            return None
        line = self.output.readline()
        return line if line.endswith(b"\n") else None

    def end(self) -> int:
        """Kill the process and return its exit status (its own, if it had already ended)."""
        self.process.kill()
        code = self.process.wait()
        self.forget()
        return code

    def forget(self) -> None:
        """Close this process's ends of the pipes; the worker ends when nobody holds them."""
        self.output.close()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _death(code: int, seconds: float) -> Failure:
    if code == -signal.SIGPROF:
        return Failure(f"took longer than {seconds:g} s", timed_out=True)
    if code == -signal.SIGALRM:
        return Failure(f"took longer than {WALL * seconds:g} s by the wall clock", timed_out=True)
    return Failure(f"the worker process ended with status {code}")


_ALL: weakref.WeakSet[Workers] = weakref.WeakSet()


def _after_fork() -> None:
    for workers in _ALL:
        workers._forget()


def _at_exit() -> None:
    for workers in _ALL:
        workers.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
