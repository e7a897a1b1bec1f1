"""One thread that generates, for all requests that wait at a time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from assay.engines.base import Request, Sampling
from assay.errors import RunError
from assay.serve import limits
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


class Busy(Exception):
    """More is waiting than the server takes on."""


def _nobody() -> None:
    """Wake nobody."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Requests with the same sampling, and what becomes of them.

    Attributes:
        live: tokens are wanted as they are drawn.
        wake: called, from the thread that generates, after each thing told.
        left: set once nobody waits for the answer any more.
    """

    requests: list[Request]
    live: bool = False
    wake: Callable[[], None] = _nobody
    told: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def tokens(self) -> int:
        """Tokens that are drawn for it at most."""
        return sum(r.n * r.sampling.max_tokens for r in self.requests)

    def tell(self, event: Event) -> None:
        if not self.left.is_set():
            self.told.put(event)
            self.wake()

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

    Attributes:
        changed: notified when a job comes, leaves or is answered; guards the rest.
        waiting: jobs that no call has taken up yet.
        open: all jobs that are neither answered nor left, with their tokens.
    """

    def __init__(self, engine: ServedEngine):
        self.engine = engine
        self.calls = self.came = 0
        self.changed = threading.Condition()
        self.waiting: list[Job] = []
        self.open: dict[Job, int] = {}
        self.thread = threading.Thread(target=self._run, name="assay-serve", daemon=True)
        self.thread.start()

    def submit(self, job: Job) -> Job:
        """Take a job on.

        Raises:
            Busy: too much is open already.
        """
        with self.changed:
            if self.engine.stopping.is_set():
                job.tell(RunError("the server is stopping"))
                return job
            tokens = job.tokens
            if self.open and sum(self.open.values()) + tokens > limits.WAITING:
                raise Busy("too much is being generated already; try again later")
            self.open[job] = tokens
            self.waiting.append(job)
            self.came += 1
            self.changed.notify_all()
        return job

    def leave(self, job: Job) -> None:
        """Forget a job that nobody waits for: what was not begun is not, and what was ends at its next token."""
        job.left.set()
        with self.changed:
            self.open.pop(job, None)
            if job in self.waiting:
                self.waiting.remove(job)
            self.changed.notify_all()

    def stop(self) -> None:
        """End what is being generated, refuse what waits, and return when the thread has ended."""
        self.interrupt()
        self.thread.join()

    def interrupt(self) -> None:
        """Begin to stop, without waiting for it."""
        self.engine.stopping.set()
        with self.changed:
            self.changed.notify_all()

    def _run(self) -> None:
        while jobs := self._together():
            alike: dict[Sampling, list[Job]] = {}
            for job in jobs:
                alike.setdefault(job.requests[0].sampling, []).append(job)
            for same in alike.values():
                if here := [job for job in same if not job.left.is_set()]:
                    self._answer(here)
                with self.changed:
                    for job in same:
                        self.open.pop(job, None)
                    self.changed.notify_all()

    def _together(self) -> list[Job]:
        """Return jobs that came together, which are all that wait; none once the server stops and none is left."""
        stopping = self.engine.stopping.is_set
        with self.changed:
            while not self.waiting and not stopping():
                self.changed.wait_for(lambda: self.waiting or stopping())
                end = time.monotonic() + GATHER
                while not stopping() and (left := end - time.monotonic()) > 0:
                    came = self.came
                    if not self.changed.wait_for(lambda came=came: self.came > came or stopping(), min(left, LULL)):  # type: ignore[misc]
                        break
            jobs, self.waiting = self.waiting, []
            return jobs

    def _answer(self, jobs: list[Job]) -> None:
        where = [(job, i) for job in jobs for i in range(len(job.requests))]

        def drawn(request: int, sample: int, token: int, logprob: float) -> None:
            job, i = where[request]
            if job.live:
                job.tell(Token(i, sample, token, logprob))

        def unwanted(request: int) -> bool:
            if all(job.left.is_set() for job in jobs):
                raise RunError("all who waited have left")
            return where[request][0].left.is_set()

        self.engine.drawn = drawn if any(job.live for job in jobs) else None
        self.engine.unwanted = unwanted
        try:
            self.calls += 1
            rows = iter(self.engine.generate([job.requests[i] for job, i in where]))
            for job in jobs:
                job.tell([next(rows) for _ in job.requests])
        except Exception as error:  # whatever it is, those who wait must hear of it, and others be served on
            for job in jobs:
                job.tell(error)
        finally:
            self.engine.drawn = self.engine.unwanted = None
