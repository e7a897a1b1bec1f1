"""Environments in a few processes, each of which hosts many episodes."""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import nullcontext
from typing import Any

from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.hosted.host import Host, Lost
from assay.errors import UsageError
from assay.from_file import is_reference
from assay.registry import bound, find
from assay.tasks.base import TaskSource
from assay.types import Task, Verdict
from assay.verify.isolate.modules import imports_of
from assay.verify.isolate.workers import MOST

CLOSED = "the environments were closed"


class Worlds:
    """Makes environments that live in ``workers`` processes, or here where that is 0.

    A call that takes longer than ``seconds`` spoils its process: the others that it hosts are played to their end in
    it, and new ones begin in another, once that has started. Where one call holds up all, or the process ends by
    itself, they are :class:`~assay.environments.hosted.host.Lost`, and can be played again in another. Nobody knows
    whose call it was: the suspects are played again with :meth:`alone`, where one call is made at a time.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        workers: processes, started when first needed.
        seconds: wall time of one call.

    Raises:
        UsageError: no such environment, or options it does not take.
    """

    def __init__(self, environment: str | Mapping[str, Any], workers: int = 0, seconds: float = 60.0):
        if not 0 <= workers <= MOST or not 0 < seconds < math.inf:
            raise UsageError(f"environments: workers {workers} must be 0 to {MOST}, and seconds {seconds:g} above 0")
        options = {"name": environment} if isinstance(environment, str) else dict(environment)
        self.name = name = str(options.pop("name", ""))
        # Found once: a file that names it is not run again for every episode.
        factory = find("environment", name)
        self.here = bound(factory, options, f"environment {name!r}")
        self.here()  # what is wrong with its options is said at once
        self.workers, self.seconds = workers, seconds
        modules = [] if is_reference(name) else [factory.__module__]
        self._what = (imports_of(modules, f"environment {name!r}"), name, options) if workers else None
        # The last place is that of :meth:`alone`.
        self._places: list[Host | None] = [None] * (workers + 1)
        self._coming: dict[int, Future[Host]] = {}
        self._hosts: list[Host] = []
        self._lock, self._single = threading.Lock(), threading.Lock()
        self._numbers = itertools.count()
        weakref.finalize(self, _end, self._hosts, self._coming)

    def __call__(self) -> Any:
        """Return an environment.

        Raises:
            EnvironmentFailure: its process could not be started.
        """
        return self._hosted(alone=False) if self.workers else self.here()

    def alone(self) -> Any:
        """Return an environment in a process that makes one call at a time.

        Raises:
            EnvironmentFailure: its process could not be started.
        """
        return self._hosted(alone=True) if self.workers else self.here()

    def beside(self, world: Any) -> Any:
        """Return an environment in another process than ``world`` is in, where there is another.

        Raises:
            EnvironmentFailure: its process could not be started.
        """
        return self._hosted(alone=False, but=getattr(world, "host", None)) if self.workers else self.here()

    def start(self) -> None:
        """Start the processes, if there are to be some.

        Raises:
            UsageError: the environment cannot be made in one.
        """
        try:
            if self.workers:
                self().close()
        except EnvironmentFailure as error:
            raise UsageError(f"the environment: {error}; mend that, or set workers = 0") from None

    def _hosted(self, alone: bool, but: Host | None = None) -> Hosted:
        places = [self.workers] if alone else list(range(self.workers))
        while True:
            with self._lock:
                coming = [self._coming[place] for place in places if self._replaced(place)]
                hosts = [host for place in places if (host := self._places[place]) is not None and not host.why]
                # Until another is there, a process with a call that is late hosts others too: it answers them.
                usable = [host for host in hosts if not (alone and host.spoilt)]
                if usable and all(self._places[place] for place in places):
                    host = min(usable, key=lambda h: (h is but, h.spoilt, len(h.episodes)))
                    episode = next(self._numbers)
                    host.episodes.add(episode)
                    break
            wait(coming, return_when=FIRST_COMPLETED)
        return _kind(tuple(host.methods))(host, episode, self.seconds, self._single if alone else None, self.here)

    def _replaced(self, place: int) -> bool:
        """Have a process started for a place that has none, or a spoilt one; return whether it is still coming.

        Raises:
            EnvironmentFailure: it could not be started.
        """
        host = self._places[place]
        if host is not None and not host.why and not host.spoilt:
            return False
        if place not in self._coming:
            self._coming[place] = _started(self._what)
        if not self._coming[place].done():
            return True
        host = self._places[place] = self._coming.pop(place).result()
        self._hosts[:] = [*(h for h in self._hosts if not h.why), host]
        return False

    def close(self) -> None:
        """End the processes; episodes under way are lost."""
        with self._lock:
            _end(self._hosts, self._coming)


def _end(hosts: list[Host], coming: dict[int, Future[Host]]) -> None:
    for host in hosts:
        host.end(CLOSED)
    for one in coming.values():
        one.add_done_callback(_unwanted)
    coming.clear()


def _started(what: Any) -> Future[Host]:
    """Return what will be a process, which is started beside."""
    coming: Future[Host] = Future()

    def start() -> None:
        try:
            coming.set_result(Host(*what))
        except BaseException as error:  # who waits for it is told
            coming.set_exception(error)

    threading.Thread(target=start, daemon=True).start()
    return coming


def _unwanted(coming: Future[Host]) -> None:
    if coming.exception() is None:
        coming.result().end(CLOSED)


class Hosted:
    """An environment that lives in another process; ``processor`` is what its episode has used, in seconds."""

    def __init__(self, host: Host, episode: int, seconds: float, single: threading.Lock | None, here: Any):
        self.host, self.episode, self.seconds, self.single, self.here = host, episode, seconds, single, here
        self.repeats, self.processor = host.repeats, 0.0

    def tasks(self) -> TaskSource:
        found: TaskSource = self.here().tasks()
        return found

    def reset(self, task: Task, seed: int) -> Observation:
        shown: Observation = self._ask("reset", _plain(task), seed)
        return shown

    def step(self, action: Action) -> Step:
        made: Step = self._ask("step", action)
        return made

    def verdict(self) -> Verdict:
        found: Verdict = self._ask("verdict")
        return found

    def close(self) -> None:
        """Free the episode; the process closes its environment, and nobody waits for that."""
        self.host.forget(self.episode)

    def _ask(self, method: str, *arguments: Any) -> Any:
        with self.single or nullcontext():
            try:
                value, self.processor = self.host.ask(self.episode, method, arguments, self.seconds)
            except Lost as error:
                if self.single is None or not error.suspect:
                    raise
                # The only call there was.
                raise EnvironmentFailure(f"{method}: {error}") from None
        return value


def _plain(task: Task) -> Task:
    """Return a task that can be sent: what it holds may be a view of something that cannot."""
    return Task(task.id, task.prompt, task.reference, task.kind, task.solution, task.hints, dict(task.meta))


_KINDS: dict[tuple[str, ...], type[Hosted]] = {}


def _kind(methods: tuple[str, ...]) -> type[Hosted]:
    """Return the class of hosted environments with these optional methods, so that who has one is seen by it."""
    if methods not in _KINDS:
        _KINDS[methods] = type("Hosted", (Hosted,), {name: _asking(name) for name in methods})
    return _KINDS[methods]


def _asking(name: str) -> Any:
    def method(self: Hosted, *arguments: Any) -> Any:
        return self._ask(name, *arguments)

    return method
