"""One disposable process of :class:`assay.verify.isolate.workers.Workers`, seen from the side that asks."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

START = 120.0
"""Seconds a process may take to import its module and prepare."""
GRACE = 10.0
"""Seconds past its wall time after which a call is given up, should a check have disarmed the kernel timer."""
GATHER = 0.001
"""Seconds to let replies gather before reading on: waking for each would cost more than most checks."""
SPENT = b'{"error": "ran out of memory", "cause": "memory"}'
"""The last reply of a process that ran out of memory: what it still holds must not be another call's trouble."""

Request = tuple[bytes, float, float]
"""A pickled ``(function, arguments)``, processor seconds, wall seconds."""


class Process:
    """A process running :mod:`assay.verify.isolate.worker`.

    It is in a process group of its own, so that Ctrl-C does not reach it, and ends when its standard input does.

    Raises:
        OSError: it could not be started, or ended before it was ready.
    """

    def __init__(self, module: str, setup: tuple[Any, ...], memory: int, writes: bool) -> None:
        script = os.path.join(os.path.dirname(__file__), "worker.py")
        self.served = 0
        self.process = subprocess.Popen(
            # The file and not -m, with -P: nothing beside it or in the working folder is imported by mistake.
            [sys.executable, "-P", "-W", "ignore", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            process_group=0,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self.stdout, select.POLLIN)
        try:
            # A process that cannot import its module answers every call with the reason.
            ready = self._send((sys.path, module, setup, memory, writes)) and self._read([START])
        except BaseException:
            self.end()
            raise
        if not ready:
            raise OSError(f"it ended with status {self.end()} before it was ready")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, requests: list[Request]) -> list[bytes]:
        """Return a line for each request, in order; fewer if the process died on the first one without a line."""
        self.served += len(requests)
        if not self._send(requests):
            return []
        return self._read([wall + GRACE for _, _, wall in requests])

    def _send(self, message: Any) -> bool:
        try:
            # The process reads a message whole before it answers, so neither side waits for the other's pipe to drain.
            view = memoryview(pickle.dumps(message))
            while view:
                view = view[os.write(self.stdin, view) :]
        except BrokenPipeError:
            return False
        return True

    def _read(self, patience: list[float]) -> list[bytes]:
        """Read as many lines as there are entries of ``patience``, seconds to wait for each."""
        read: list[bytes] = []
        lines = 0
        while lines < len(patience):
            if not self._poll.poll(1000 * patience[lines]):
                self.kill(signal.SIGALRM)
                break
            data = os.read(self.stdout, 1 << 20)
            if not data:
                break
            read.append(data)
            lines += data.count(b"\n")
            if lines < len(patience):
                time.sleep(GATHER)
        return b"".join(read).split(b"\n")[:-1]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process and those it started."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def end(self) -> int:
        """Kill the process and return its exit status (its own, if it had already ended)."""
        self.kill()
        code = self.process.wait()
        self.forget()
        return code

    def forget(self) -> None:
        """Close this side's ends of the pipes; the process ends when nobody holds them."""
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
