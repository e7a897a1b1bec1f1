"""One thread that generates, for all requests that wait at a time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from assay.engines.base import Request, Sampling
from assay.errors import RunError
from assay.serve.decoding import ServedEngine
from assay.types import Episode

LULL = 0.005
"""Seconds without another request after which those that came together are together."""

GATHER = 0.05
"""Seconds that the first of them waits at most."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was just drawn, for response ``sample`` of request ``request`` of a job."""

    request: int
    sample: int
    token: int
    logprob: float


Event = Token | list[list[Episode]] | Exception


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Requests with the same sampling, and what becomes of them.

    Attributes:
        live: tokens are wanted as they are drawn.
        gone: tells whether nobody waits for the answer any more.
    """

    requests: list[Request]
    live: bool = False
    gone: Callable[[], bool] = lambda: False
    told: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)

    def events(self) -> Iterator[Event]:
        """Yield tokens, if they are wanted, and last the responses or what went wrong."""
        while True:
            event = self.told.get()
            yield event
            if not isinstance(event, Token):
                return


class Batcher:
    """Hands what waits to the engine, one call for all jobs of the same sampling; no response depends on the others.

    Args:
        engine: used by this thread alone.
    """

    def __init__(self, engine: ServedEngine):
        self.engine = engine
        self.calls = 0
        self.waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="assay-serve", daemon=True)
        self.thread.start()

    def submit(self, job: Job) -> Job:
        if self.engine.stopping.is_set():
            job.told.put(RunError("the server is stopping"))
        else:
            self.waiting.put(job)
        return job

    def stop(self) -> None:
        """End what is being generated, refuse what waits, and return when the thread has ended."""
        self.engine.stopping.set()
        self.waiting.put(None)
        self.thread.join()

    def _run(self) -> None:
        while (first := self.waiting.get()) is not None:
            jobs, stop = self._together(first)
            alike: dict[Sampling, list[Job]] = {}
            for job in jobs:
                if not job.gone():
                    alike.setdefault(job.requests[0].sampling, []).append(job)
            for same in alike.values():
                self._answer(same)
            if stop:
                return

    def _together(self, first: Job) -> tuple[list[Job], bool]:
        """Return the jobs that came with ``first``, and whether the thread is to end after them."""
        jobs, end = [first], time.monotonic() + GATHER
        while (left := end - time.monotonic()) > 0:
            try:
                job = self.waiting.get(timeout=min(left, LULL))
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _answer(self, jobs: list[Job]) -> None:
        where = [(job, i) for job in jobs for i in range(len(job.requests))]

        def drawn(request: int, sample: int, token: int, logprob: float) -> None:
            job, i = where[request]
            if job.live:
                job.told.put(Token(i, sample, token, logprob))

        self.engine.drawn = drawn if any(job.live for job in jobs) else None
        try:
            self.calls += 1
            rows = iter(self.engine.generate([job.requests[i] for job, i in where]))
            for job in jobs:
                job.told.put([next(rows) for _ in job.requests])
        except Exception as error:  # whatever it is, those who wait must hear of it, and others be served on
            for job in jobs:
                job.told.put(error)
