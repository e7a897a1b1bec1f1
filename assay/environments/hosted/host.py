"""One process that hosts environments, seen from the side that asks."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from assay.environments.base import EnvironmentFailure
from assay.environments.hosted.wire import unpacked
from assay.verify.isolate.modules import Imports

START = 120.0
"""Seconds a process may take to import the environment."""
PATIENCE = 5.0
"""Seconds in which a process answers that still can."""
START_BY = "import sys; sys.path[:] = {!r}; from assay.environments.hosted.inside import main; main()"

Reply = Future[tuple[str, bytes, float]]
"""An error, what was returned, processor seconds."""


class Lost(EnvironmentFailure):
    """The process ended during an episode.

    Attributes:
        suspect: whether a call of this episode was under way, which may have ended it.
    """

    def __init__(self, reason: str, suspect: bool):
        super().__init__(reason)
        self.suspect = suspect


class Host:
    """A process that runs :mod:`assay.environments.hosted.inside`, in a process group of its own.

    Args:
        imports: see :func:`assay.verify.isolate.modules.imports_of`.
        name, options: of the environment.

    Raises:
        EnvironmentFailure: it could not be started, or could not make the environment.
    """

    def __init__(self, imports: Imports, name: str, options: dict[str, Any]):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START_BY.format(sys.path), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self.connection = Connection(ours.detach())
        self.episodes: set[int] = set()
        self.numbers = itertools.count()
        self.asked: dict[int, Reply] = {}
        self.lock, self.sending = threading.Lock(), threading.Lock()
        self.why, self.spoilt = "", False
        try:
            self.connection.send((imports, name, options))
            hello: dict[str, Any] = (
                json.loads(self.connection.recv_bytes()) if self.connection.poll(START) else {"error": "it is late"}
            )
        except (OSError, EOFError):
            hello = {"error": f"it ended with status {self.process.wait()}"}
        if "error" in hello:
            self.end(hello["error"])
            self.connection.close()
            raise EnvironmentFailure(f"its process could not be started: {hello['error']}")
        self.methods: list[str] = hello["methods"]
        self.repeats: bool = hello["repeats"]
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, episode: int, method: str, arguments: tuple[Any, ...], seconds: float) -> tuple[Any, float]:
        """Return what an episode's method returns, and the processor seconds the episode has used.

        Raises:
            Lost: the process ended meanwhile, or before.
            EnvironmentFailure: the method raised, returned what it may not, or took longer than ``seconds``. The
                process is ``spoilt`` then: it is ended once the other episodes have left it, or at once where they
                cannot go on in it.
        """
        number, reply = self._send(episode, method, arguments)
        try:
            error, value, used = reply.result(seconds)
        except Late:
            self.asked.pop(number, None)
            self.spoilt, late = True, f"{method} took longer than {seconds:g} s"
            if self._answers():
                raise EnvironmentFailure(late) from None
            # One of the calls holds up all.
            self._end(late, suspect=True)
            raise Lost(late, suspect=True) from None
        if error:
            raise EnvironmentFailure(error)
        try:
            return unpacked(method, value), used
        except ValueError as wrong:
            raise EnvironmentFailure(f"{method} returned what it may not: {wrong}") from None

    def _send(self, episode: int, method: str, arguments: tuple[Any, ...]) -> tuple[int, Reply]:
        """Ask, and return the number of the call with what will be its reply."""
        reply: Reply = Future()
        with self.lock:
            if self.why:
                raise Lost(self.why, suspect=False)
            number = next(self.numbers)
            self.asked[number] = reply
        try:
            # Under a lock of its own: a process that reads no more holds up who sends, and nobody who waits.
            with self.sending:
                self.connection.send((number, episode, method, arguments))
        except OSError:
            raise Lost("its process has ended", suspect=False) from None
        return number, reply

    def _answers(self) -> bool:
        """Whether the process can still do anything: one call that is stuck may hold up all."""
        with suppress(Late, Lost):
            self._send(-1, "ping", ())[1].result(PATIENCE)
            return True
        return False

    def forget(self, episode: int) -> None:
        """Free an episode."""
        self.episodes.discard(episode)
        if self.spoilt and not self.episodes:
            self.end("nobody is left in it")
        with self.sending, suppress(OSError):
            if not self.why:
                self.connection.send((0, episode, "forget", ()))

    def end(self, why: str) -> None:
        """Kill the process; calls under way end as lost, by ``why``, and are above suspicion."""
        self._end(why, suspect=False)

    def _end(self, why: str, suspect: bool) -> None:
        with self.lock:
            if self.why:
                return
            self.why = why
            asked, self.asked = self.asked, {}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, 9)
        self.process.wait()
        for reply in asked.values():
            reply.set_exception(Lost(why, suspect))

    def _listen(self) -> None:
        with suppress(OSError, EOFError):
            while True:
                line, _, value = self.connection.recv_bytes().partition(b"\n")
                number, error, used = json.loads(line)
                with self.lock:
                    answered = self.asked.pop(number, None)
                if answered is not None:
                    answered.set_result((error, value, used))
        self._end("its process has ended", suspect=True)
        self.connection.close()
