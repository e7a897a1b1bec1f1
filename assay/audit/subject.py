"""What is audited: a registered verifier, a Python function or a program, each judging rows in the same way."""

from __future__ import annotations

import itertools
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from assay.audit.command import Command
from assay.audit.outcome import Outcome
from assay.audit.version import command_hash, source_hash
from assay.audit.worker import make_judge
from assay.errors import RunError
from assay.registry import find, names
from assay.types import Task
from assay.verify.isolate.pool import check_verifier
from assay.verify.isolate.workers import CORES, Failure, Workers
from assay.verify.kind import KindVerifier
from assay.version import __version__

Item = tuple[Task, str]
PATIENCE = 3.0
"""The wall clock may run this many times the processor time allowed."""


class Subject(Protocol):
    """A verifier under audit.

    Attributes:
        name: what it is called in reports and records.
        options: its options as plain data.
        version: hash of the code it runs.
    """

    name: str
    options: dict[str, Any]
    version: str

    def judge(self, items: Iterable[Item]) -> Iterator[Outcome]:
        """Yield an outcome per (task, response), in order; what fails on one of them costs that one."""

    def check(self, tasks: Iterable[Task]) -> None:
        """Raise UsageError for a task that it cannot be asked about at all."""

    def close(self) -> None:
        """End its processes."""


class Isolated:
    """A verifier or function of Python, judging in processes that can be killed.

    Args:
        spec: a registered verifier, ``by_kind``, ``package.module:function`` or ``path/to/file.py:function``.
        options: of the verifier, or keyword arguments of the function.
        seconds: processor time one response may take; the wall clock may run :data:`PATIENCE` times as long.
        threshold: score from which a bare number passes.
        workers: processes.

    Raises:
        UsageError: no such verifier (naming the nearest), option, module or function.
    """

    def __init__(
        self,
        spec: str,
        options: Mapping[str, Any] | None = None,
        seconds: float = 10.0,
        threshold: float = 0.5,
        workers: int = CORES,
    ):
        # As `python -m` does: a module beside the user is found, here and in the processes.
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        self.name, self.options, self.seconds = spec, dict(options or {}), seconds
        self._judge, code = make_judge(spec, self.options)
        if isinstance(code, KindVerifier):
            hashes = [source_hash(find("verify", kind)) for kind in names("verify")]
            self.version = source_hash(code, *hashes)
        else:
            self.version = source_hash(code)
        self._workers = Workers("assay.audit.worker", workers, setup=(spec, self.options, threshold), writes=True)

    def judge(self, items: Iterable[Item]) -> Iterator[Outcome]:
        calls = (
            ((t.id, t.prompt, t.reference, t.kind, t.solution, t.hints, dict(t.meta)), response)
            for t, response in items
        )
        found = self._workers.map("check", calls, seconds=self.seconds, wall=PATIENCE * self.seconds)
        return map(self._outcome, found)

    def check(self, tasks: Iterable[Task]) -> None:
        check_verifier(self._judge, tasks)

    def close(self) -> None:
        self._workers.close()

    @staticmethod
    def _outcome(reply: Any) -> Outcome:
        if not isinstance(reply, Failure):
            return Outcome(*reply)
        if reply.cause == "unloaded":
            raise RunError(f"the verifier works here but not in a process of its own: {reply.reason}")
        return Outcome("timed_out" if reply.timed_out else "crashed", 0.0, reply.reason, math.nan)


class Program:
    """An external program, several copies of which judge at once; see :class:`~assay.audit.command.Command`."""

    def __init__(self, command: Command, workers: int = CORES):
        self.command, self.workers = command, max(1, workers)
        self.name = Path(command.words[0]).name
        self.options: dict[str, Any] = {"command": command.command, "threshold": command.threshold}
        self.version = command_hash(command.words)

    def judge(self, items: Iterable[Item]) -> Iterator[Outcome]:
        remaining = iter(items)
        pending: deque[Future[Outcome]] = deque()
        threads = ThreadPoolExecutor(self.workers)
        try:
            while True:
                room = 4 * self.workers - len(pending)
                pending.extend(threads.submit(self.command.judge, *item) for item in itertools.islice(remaining, room))
                if not pending:
                    return
                yield pending.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def check(self, tasks: Iterable[Task]) -> None:
        """Any row can be sent to a program."""

    def close(self) -> None:
        self.command.close()


def package() -> str:
    """The package and version that the built-in verifiers come from."""
    return f"assay {__version__}"
