"""Any verifier in processes of its own, beside generation."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from assay.errors import UsageError
from assay.registry import added
from assay.types import Task, Verdict
from assay.verify.answer.spans import Span
from assay.verify.base import answer_place
from assay.verify.isolate import workers as isolate
from assay.verify.isolate.modules import Imports, imports_of
from assay.verify.isolate.workers import MOST, WALL, Failure, Workers
from assay.verify.kind import KindVerifier, check_ready
from assay.verify.make import make_verifier


class VerifierPool:
    """A verifier that judges in worker processes, many responses at a time.

    A check that hangs, crashes its process or runs out of memory costs that check alone, which abstains with the
    reason. The clock of a check starts when it starts, not when it is asked for. Checks are sent to a process several
    at a time if they are quick; when one kills its process, those before it keep their verdicts and those after it are
    run in a new one. A pool is itself a verifier, safe to use from any thread.

    Args:
        verifier: a name, a table or a callable, see :func:`~assay.verify.make.make_verifier`; ``None`` goes by each
            task's kind. A callable has to be something that pickle holds: a function or an instance of a class that a
            module or the main script defines.
        workers: processes; the number of cores unless given.
        seconds: processor time one check may take. What a check spends in processes of its own does not count.
        wall: wall time one check may take; ten times as much unless given.
        memory: bytes of address space of each process.

    Raises:
        UsageError: the verifier cannot be made, or cannot be sent to another process.
    """

    def __init__(
        self,
        verifier: Any = None,
        workers: int | None = None,
        seconds: float = 30.0,
        wall: float | None = None,
        memory: int = 4 << 30,
    ):
        if workers is not None and not 1 <= workers <= MOST:
            raise UsageError(f"a pool of {workers} workers cannot judge; give 1 to {MOST}")
        if not all(0 < limit < math.inf for limit in (seconds, wall or seconds)) or wall == 0:
            raise UsageError(f"seconds {seconds:g} and wall {wall} must be finite and above 0")
        self.verifier = make_verifier(verifier)
        self.limits = {"seconds": seconds, "wall": wall or WALL * seconds}
        described = verifier is None or isinstance(verifier, str | Mapping)
        setup = _setup(verifier if described else self.verifier)
        # Verifiers that run programs write files, and bound what those programs do by themselves.
        self.workers = Workers("assay.verify.isolate.pool_worker", workers, memory, setup, writes=True)

    def __call__(self, task: Task, response: str) -> Verdict:
        return _verdict(self.workers.call("check", *self._call(task, response), **self.limits))

    def submit(self, task: Task, response: str) -> Future[Verdict]:
        """Return the verdict to come; it never raises, but a future that waits may be cancelled."""
        verdict: Future[Verdict] = Future()
        verdict.set_running_or_notify_cancel()
        asked = self.workers.submit("check", *self._call(task, response), **self.limits)
        asked.add_done_callback(lambda done: verdict.set_result(_verdict(done.result())))
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]], ahead: int | None = None) -> Iterator[Verdict]:
        """Yield a verdict for each pair, in order, judged in parallel.

        ``pairs`` is read at most ``ahead`` further than verdicts are taken, about a thousand per process unless given,
        so it may be endless.
        """
        calls = itertools.starmap(self._call, pairs)
        for reply in self.workers.map("check", calls, ahead=ahead, **self.limits):
            yield _verdict(reply)

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`; told here, in this process."""
        return answer_place(self.verifier, task, response)

    def check(self, tasks: Iterable[Task]) -> None:
        """Raise UsageError for what would make every check fail, before the first one.

        That is the first task whose kind no verifier judges, where the verifier goes by kind; and a verifier that needs
        what this machine lacks, such as a sandbox.
        """
        check_verifier(self.verifier, tasks)

    def close(self) -> None:
        """End the processes; checks under way abstain."""
        self.workers.close()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, task: Task, response: str) -> tuple[tuple[Any, ...], str]:
        if isinstance(self.verifier, KindVerifier):
            self.verifier.verifier(task)
        # A plain tuple takes a third of the time that pickling the record does, and meta may be a view.
        fields = (task.id, task.prompt, task.reference, task.kind, task.solution, task.hints, dict(task.meta))
        return fields, response


def check_verifier(verifier: Any, tasks: Iterable[Task]) -> None:
    """Raise UsageError where ``verifier`` cannot judge ``tasks`` on this machine at all, as far as can be told now."""
    if isinstance(verifier, KindVerifier | VerifierPool):
        verifier.check(tasks)
    else:
        check_ready(verifier)


def _verdict(reply: Any) -> Verdict:
    return Verdict.abstain(f"the check failed: {reply.reason}") if isinstance(reply, Failure) else Verdict(*reply)


CLOSED = _verdict(isolate.CLOSED)
"""The abstention of a check that was under way, or waited, when the pool was closed."""


def _setup(spec: Any) -> tuple[Imports, bytes]:
    """What a process needs to make the verifier: what it imports, the pickled spec."""
    try:
        pickled = pickle.dumps(spec)
    except Exception as error:
        raise UsageError(
            f"the verifier cannot be sent to a worker process ({error}); define it at the top level of a module"
        ) from None
    return imports_of(
        {made.__module__ for made in added("verify").values()}, "the verifier", b"__main__" in pickled
    ), pickled
