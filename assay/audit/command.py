"""A verifier that is a program: one JSON row a line on its standard input, one JSON verdict a line on its output.

The program reads ``{"id", "question", "reference", "response", "kind"}`` and answers each line, in order, with one of

- ``true``, ``false`` or ``null`` (it cannot tell);
- a score in [0, 1], which passes from ``threshold`` on;
- ``{"passed": true, "score": 1.0, "feedback": "..."}``, of which ``passed`` or ``score`` suffices. With ``"id"`` in it,
  it has to be the row's: without it, a program that now and then writes a line too many may be taken at its word for
  the row after, until the surplus is seen.

It is never told the label. It is started when first needed and kept; after a crash, a time-out or an answer that is
none of these it is killed and started again for the next row. The time of a first answer includes starting it.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress

from assay.audit.outcome import Outcome, outcome, shown
from assay.errors import RunError, UsageError
from assay.types import Task

LONGEST_LINE = 16 << 20
"""Bytes of the longest answer that is read."""
HOPELESS = 3
"""Failures in a row, before any verdict, after which the program is taken to be broken."""


class Command:
    """Judges with an external program; safe to call from several threads, each of which uses a process of its own.

    Args:
        command: program and arguments, split as a shell would; no shell is run.
        seconds: longest wall time of one answer.
        startup: seconds allowed in addition for the first answer of a process, which may have to load a model.
        threshold: least score that passes where the program gives only a score.

    Raises:
        UsageError: when made, for an empty command or a program that does not exist.
        RunError: when called, if the program fails :data:`HOPELESS` times before its first verdict.
    """

    def __init__(self, command: str, seconds: float = 10.0, startup: float = 60.0, threshold: float = 0.5):
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--command {command!r} cannot be split into words: {error}") from None
        if not self.words:
            raise UsageError("--command is empty; give a program with its arguments")
        if shutil.which(self.words[0]) is None:
            raise UsageError(f"--command: no program {self.words[0]!r} that can be run")
        self.command, self.seconds, self.startup, self.threshold = command, seconds, startup, threshold
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._lock = threading.Lock()
        self._judged, self._failed, self._closed = 0, 0, False

    def judge(self, task: Task, response: str) -> Outcome:
        """Return what the program says of ``response``; a program that fails costs this one row."""
        row = {
            "id": task.id,
            "question": task.question,
            "reference": task.reference,
            "response": response,
            "kind": task.kind,
        }
        try:
            # ASCII, because lone surrogates have no UTF-8.
            line = json.dumps(row).encode() + b"\n"
        except (TypeError, ValueError) as error:
            return Outcome("crashed", 0.0, f"the row cannot be written as JSON: {error}", 0.0)
        process = self._take()
        begun = time.perf_counter()
        answer: bytes | None = None
        timed_out = False
        try:
            answer = process.ask(line, self.seconds + (self.startup if not process.served else 0.0))
        except TimeoutError:
            timed_out = True
        except OSError as error:
            process.complaint = str(error)
        except KeyboardInterrupt:
            self._drop(process)
            raise
        seconds = time.perf_counter() - begun
        if answer is not None:
            found = self._read(answer, task.id, seconds)
        elif timed_out:
            found = Outcome("timed_out", 0.0, f"no answer within {self.seconds:g} s", seconds)
        else:
            found = Outcome("crashed", 0.0, process.died(), seconds)
        with self._lock:
            broken = found.status in ("crashed", "timed_out")
            self._failed += broken
            self._judged += not broken
            hopeless = self._judged == 0 and self._failed >= HOPELESS
            if not broken:
                process.served += 1
                self._idle.append(process)
        if broken:
            self._drop(process)
        if hopeless and not self._closed:
            raise RunError(f"--command {self.command!r} gave no verdict in {self._failed} rows: {found.feedback}")
        return found

    def close(self) -> None:
        """End every process."""
        self._closed = True
        for process in list(self._all):
            self._drop(process)

    def _take(self) -> _Process:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        try:
            process = _Process(self.words)
        except OSError as error:
            raise RunError(f"--command {self.command!r} cannot be started: {error.strerror or error}") from None
        with self._lock:
            self._all.add(process)
        if self._closed:
            self._drop(process)
            raise RunError(f"--command {self.command!r} was closed")
        return process

    def _drop(self, process: _Process) -> None:
        process.end()
        with self._lock:
            self._all.discard(process)

    def _read(self, answer: bytes, id: str, seconds: float) -> Outcome:
        try:
            said = json.loads(answer)
        except (ValueError, RecursionError):
            text = answer.decode(errors="replace").strip()
            return Outcome("crashed", 0.0, f"answered {shown(text)}, which is not JSON", seconds)
        if isinstance(said, dict) and "id" in said and said["id"] != id:
            return Outcome("crashed", 0.0, f"answered for row {shown(said['id'])} instead of {shown(id)}", seconds)
        return outcome(said, seconds, self.threshold)


class _Process:
    """One running copy of the program, in a session of its own so that Ctrl-C does not reach it."""

    def __init__(self, words: list[str]) -> None:
        self.served = 0
        self.complaint = ""
        # A file and not a pipe: nobody has to read it, so that a talkative program never blocks.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """Return the answer to ``line``, ``None`` if there will be none; raise TimeoutError after ``seconds``."""
        if self._surplus():
            return None
        deadline = time.monotonic() + seconds
        left, found = memoryview(line), bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(self.stdout, selectors.EVENT_READ)
            ready.register(self.stdin, selectors.EVENT_WRITE)
            while True:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                for key, _ in ready.select(remaining):
                    if key.fd == self.stdin:
                        left = left[os.write(self.stdin, left) :]
                        if not left:
                            ready.unregister(self.stdin)
                        continue
                    some = os.read(self.stdout, 1 << 16)
                    found += some
                    end = found.find(b"\n")
                    if end >= 0:
                        if found[end + 1 :].strip():
                            self.complaint = "answered one row with more than one line"
                            return None
                        return bytes(found[:end])
                    if not some:
                        return bytes(found) if found.strip() else None
                    if len(found) > LONGEST_LINE:
                        self.complaint = f"answered with a line of more than {LONGEST_LINE >> 20} MiB"
                        return None

    def _surplus(self) -> bool:
        """Whether the program wrote without being asked: its lines and the rows are then out of step."""
        with suppress(BlockingIOError):
            if os.read(self.stdout, 1 << 16).strip():
                self.complaint = "wrote a line that answers no row"
                return True
        return False

    def died(self) -> str:
        """Say how the process ended, with the last line of its standard error."""
        if self.complaint and self.process.poll() is None:
            return self.complaint
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        code = self.process.poll()
        how = self.complaint or "closed its output"
        if code is not None:
            how = f"was killed by {_signal(-code)}" if code < 0 else f"ended with status {code}"
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 2000))
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"the program {how}" + (f": {said[-1][:200]}" if said else "")

    def end(self) -> None:
        """Kill the process and all it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            with suppress(OSError):
                file.close()  # type: ignore[union-attr]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
