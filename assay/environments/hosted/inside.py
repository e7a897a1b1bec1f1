"""What runs in a process that hosts environments: many episodes, each in a thread of its own.

Protocol, over a socket whose descriptor is the only argument: first a pickled ``(imports, name, options)``, answered by
one line about the environment; then pickled ``(number, episode, method, arguments)``, each answered as it is done by
``<JSON of number, error, processor seconds>\n<JSON of the value>``. Method ``forget`` frees an episode, ``ping`` asks
whether anything is answered still.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from assay.environments.hosted.wire import METHODS, OPTIONAL, packed
from assay.registry import call, find
from assay.verify.isolate.modules import import_all

Call = tuple[int, str, tuple[Any, ...]]


class Episode:
    """An environment in a thread: what belongs to a thread, as connections of databases do, stays in it."""

    def __init__(self, make: Callable[[], Any], answer: Callable[[int, str, bytes], None]):
        self.make, self.answer = make, answer
        self.calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        world = None
        while (asked := self.calls.get()) is not None:
            number, method, arguments = asked
            error, value = "", b"[null]"
            try:
                if method not in METHODS:
                    raise ValueError(f"an environment has no method {method!r}")
                world = self.make() if world is None else world
                value = packed(method, getattr(world, method)(*arguments))
            except BaseException as raised:
                # SystemExit too: what a user's code does in here is answered, whatever it is.
                error = f"{type(raised).__name__}: {' '.join(str(raised).split())[:1000]}"
            self.answer(number, error, value)
        if world is not None:
            world.close()


def about(make: Callable[[], Any]) -> dict[str, Any]:
    """Return what an environment has beside the protocol."""
    world = make()
    return {
        "methods": [name for name in OPTIONAL if callable(getattr(world, name, None))],
        "repeats": bool(getattr(world, "repeats", True)),
    }


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What environments print is for people: it goes where messages go.
    os.dup2(2, 1)
    imports, name, options = connection.recv()
    sys.argv[1:] = []
    try:
        import_all(imports)
        make = partial(call, find("environment", name), options, f"environment {name!r}")
        hello = about(make)
    except BaseException as error:
        connection.send_bytes(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        return
    try:
        connection.send_bytes(json.dumps(hello).encode())
    except OSError:
        return  # who asked for it is gone
    episodes: dict[int, Episode] = {}
    lock = threading.Lock()

    def answer(number: int, error: str, value: bytes) -> None:
        line = json.dumps([number, error, time.thread_time()]).encode()
        try:
            with lock:
                connection.send_bytes(line + b"\n" + value)
        except OSError:
            os._exit(0)

    while True:
        try:
            number, episode, method, arguments = connection.recv()
        except (EOFError, OSError):
            # Whatever threads are still at: who asked for it is gone.
            os._exit(0)
        if method == "ping":
            answer(number, "", b"[null]")
            continue
        if method == "forget":
            if gone := episodes.pop(episode, None):
                gone.calls.put(None)
            continue
        if episode not in episodes:
            episodes[episode] = Episode(make, answer)
        episodes[episode].calls.put((number, method, arguments))
