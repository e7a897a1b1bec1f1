"""A Python interpreter that keeps its state between runs, for a model that calls it again and again."""

from __future__ import annotations

import json
import marshal
import math
import os
import select
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from assay.errors import UsageError
from assay.sandbox import jobs
from assay.sandbox.confine import INSIDE, Kind, SandboxUnavailable
from assay.sandbox.inside import messages
from assay.sandbox.judge import judge, read_answer
from assay.sandbox.pool import DEFAULT, Sandbox, sandbox
from assay.sandbox.types import MIB, Limits, Program, Status
from assay.sandbox.worker import Lost, Worker, contents, memory_file

LINE = 8 * MIB
"""Bytes of the longest answer that is read."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run in a session.

    Attributes:
        status: ``ok``; ``error``, where the source raised, or ended the interpreter or crashed it; ``timeout``,
            ``memory``, ``output``, ``killed`` as in :class:`~assay.sandbox.types.Outcome`; or ``infrastructure``: the
            sandbox failed, and nothing is known of the source.
        stdout, stderr: what was written, at most ``Limits.output`` bytes each; a traceback stands in ``stderr``.
        value: what the last statement comes to if it is an expression, as Python shows it; ``None`` for ``None``.
        error: what was raised, in one line, e.g. ``"ValueError: no"``.
        reason: one line for people; empty when ``ok``.
        lost: whether the interpreter ended, and with it all state: the next run has a new one.
        seconds: processor seconds of the run, as the interpreter measures them itself; ``None`` if it ended.
    """

    status: Status
    stdout: bytes = b""
    stderr: bytes = b""
    value: str | None = None
    error: str = ""
    reason: str = ""
    lost: bool = False
    seconds: float | None = None

    @property
    def failed_here(self) -> bool:
        """Whether the sandbox, and not the source, is to blame."""
        return self.status == "infrastructure"


class Session:
    """A sandboxed Python interpreter that runs one source after another and keeps what they defined.

    A context manager, safe to use from several threads (runs wait for each other). Sessions share nothing: each has
    processes, memory and a ``/tmp`` of its own, which lasts as long as its interpreter. Between runs an interpreter
    takes no place of the sandbox's; during a run it takes one.

    What a source does to its interpreter is the source's result: an exception leaves the state as it is then; if the
    interpreter ends (``os._exit``, a crash, a limit), the run says so with ``lost``, and the next one starts a new
    interpreter. A thread that computes on between runs ends it when it has had the time of a run, which the next run
    says. Where the interpreter is ended from outside, the run's status is ``infrastructure``.

    Args:
        limits: of each run: processor and wall seconds, output. Memory, files and processes are held together by all
            runs of one interpreter.
        packages: importable Python packages beside the standard library.
        files: put into the working folder of each new interpreter, by relative path.
        box: where it runs; the process's own sandbox unless given.

    Raises:
        SandboxUnavailable: from :meth:`run`, where this machine cannot run programs in isolation.
        UsageError: from :meth:`run` after :meth:`close`, or in a process forked from the one that made the session.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT,
        packages: tuple[str, ...] = (),
        files: Mapping[str, str | bytes] | None = None,
        box: Sandbox | None = None,
    ):
        self.limits, self.packages, self.files = limits, packages, dict(files or {})
        self._box, self._pid, self._closed = box or sandbox(), os.getpid(), False
        self._lock = threading.Lock()
        self._live: _Interpreter | None = None

    def run(self, source: str, limits: Limits | None = None) -> Result:
        """Run ``source`` where the runs before it left off.

        Args:
            limits: of this run, in place of the session's: of processor and wall seconds and output.
        """
        if os.getpid() != self._pid:
            raise UsageError("a session belongs to the process that made it: make one after the fork")
        limits = limits or self.limits
        with self._lock:
            if self._closed:
                raise UsageError("the session is closed: make another")
            self._box.check()
            with self._box.places:
                try:
                    if self._live is None:
                        self._live = self._start()
                    result = self._live.run(source, limits)
                except (Lost, OSError, SandboxUnavailable) as error:
                    result = Result("infrastructure", reason=str(error), lost=True)
            if result.lost:
                self._end()
            return result

    def _start(self) -> _Interpreter:
        job = jobs.script(Program((INSIDE / "cells.py").read_text(), files=self.files), self.limits)
        # The kernel's own limit of processor time is of the process, which lasts for many runs.
        job["limits"] = jobs.kernel_limits(replace(self.limits, cpu_seconds=3600.0, output=self.limits.output + MIB))
        return _Interpreter(self._box.worker(Kind(self.packages)), job, self.limits)

    def _end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.end()

    def close(self) -> None:
        """End the interpreter; waits for a run that is under way."""
        with self._lock:
            self._closed = True
            if os.getpid() == self._pid:
                self._end()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Interpreter:
    """One interpreter: the zygote it was started by, and the ends of the conversation with it."""

    def __init__(self, worker: Worker, job: dict[str, Any], limits: Limits):
        self.worker, self._number = worker, 0
        self._asks, self._answers, self._texts = -1, -1, [-1, -1]
        theirs: list[int] = []
        try:
            self._texts = [memory_file(), memory_file()]
            given = memory_file(marshal.dumps(job))
            theirs = [given]
            read, self._asks = os.pipe()
            theirs.append(read)
            self._answers, write = os.pipe()
            theirs.append(write)
            worker.limit(limits)
            loading = (limits.cpu_seconds, math.inf, limits.memory, math.inf, True, False)
            worker.send(messages.JOB.pack(*loading), [given, read, *self._texts, write])
        except BaseException:
            self.end()
            raise
        finally:
            for one in theirs:
                os.close(one)

    def run(self, source: str, limits: Limits) -> Result:
        self._empty()
        self._budget(limits.cpu_seconds, limits.wall_seconds, 4 * (limits.wall_seconds + limits.cpu_seconds) + 20)
        self._number += 1
        data = json.dumps([self._number, source]).encode() + b"\n"
        with suppress(OSError):
            while data:
                data = data[os.write(self._asks, data) :]
        line = self._line()
        if line is None:
            return self._ended(limits)
        self._budget(limits.cpu_seconds, math.inf, math.inf)
        (stdout, long_out), (stderr, long_err) = (contents(one, limits.output) for one in self._texts)
        if long_out or long_err:
            # What its buffers still hold would be written by the next run.
            return Result("output", stdout, stderr, reason=f"it wrote more than {limits.output} bytes", lost=True)
        answer = _read(line, self._number)
        if answer is None:
            # Who writes there beside the interpreter is a source, whose fault it is.
            return Result("error", stdout, stderr, reason="it wrote over the interpreter's answer", lost=True)
        value, error, seconds = answer
        return Result("error" if error else "ok", stdout, stderr, value, error, error, False, seconds)

    def _ended(self, limits: Limits) -> Result:
        answer = read_answer(self.worker.receive(60))
        if answer.failed:
            return Result("infrastructure", reason=answer.failed, lost=True)
        if self.worker.ran_out() and not answer.cause:
            answer = answer._replace(cause="memory")
        texts = [contents(one, limits.output) for one in self._texts]
        # The processor time is of all runs, and so says nothing of this one's limit, which the cause tells.
        outcome = judge(answer._replace(cpu=0.0), [*texts, (b"", False)], limits, False)
        if outcome.status == "ok":
            outcome = replace(outcome, status="error", reason="it ended the interpreter")
        return Result(outcome.status, outcome.stdout, outcome.stderr, reason=outcome.reason, lost=True)

    def _line(self) -> bytes | None:
        """The interpreter's answer; ``None`` if it has ended."""
        pieces, size = [b""], 0
        poll = select.poll()
        # Processes it leaves behind, where it can, would hold the one open; on the other its end is told.
        for descriptor in (self._answers, self.worker.socket.fileno()):
            poll.register(descriptor, select.POLLIN)
        while size < LINE and not pieces[-1].endswith(b"\n"):
            if self._answers not in dict(poll.poll()):
                return None
            pieces.append(os.read(self._answers, 65536))
            size += len(pieces[-1])
            if not pieces[-1]:
                return None
        return b"".join(pieces)

    def _budget(self, cpu: float, wall: float, patience: float) -> None:
        with suppress(Lost):
            self.worker.send(messages.BUDGET.pack(cpu, wall, patience), [])

    def _empty(self) -> None:
        """Drop what was written before, between runs too: the file's position is the interpreter's as well."""
        for one in self._texts:
            os.ftruncate(one, 0)
            os.lseek(one, 0, os.SEEK_SET)

    def end(self) -> None:
        self.worker.end()
        for one in (self._asks, self._answers, *self._texts):
            if one >= 0:
                os.close(one)
        self._asks, self._answers, self._texts = -1, -1, [-1, -1]


def _read(line: bytes, number: int) -> tuple[str | None, str, float] | None:
    """The value, the error and the seconds an answer says; ``None`` if it is not the answer to run ``number``."""
    try:
        answer = json.loads(line)
        value, error, seconds = answer.get("value"), answer.get("error", ""), answer["seconds"]
        if answer["number"] != number:
            return None
    except (ValueError, AttributeError, KeyError, RecursionError):
        return None
    good = isinstance(value, str | None) and isinstance(error, str) and isinstance(seconds, float)
    return (value, error, seconds) if good else None
