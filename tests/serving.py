"""Servers in this process, of a very small model and of environments, and clients that speak plain HTTP to them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from assay.engines.hf import HFEngine
from assay.engines.target import resolve
from assay.environments.hosted.worlds import Worlds
from assay.serve.batcher import Batcher
from assay.serve.server import ModelServer
from assay.serve.worlds import WorldServer

SHAPE = ["model.nano.hidden=32", "model.nano.layers=1", "model.nano.context=96", "model.device=cpu"]
"""Overrides that make the nano model smaller."""

PATIENCE = 120.0
"""Seconds after which what has not happened is taken not to happen."""


def small_engine() -> HFEngine:
    engine = resolve("nano", SHAPE).open()
    assert isinstance(engine, HFEngine)
    return engine


@contextmanager
def running_server(server: ModelServer) -> Iterator[ModelServer]:
    """Run it in a thread, to the end of the block."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        server.close()
    assert not thread.is_alive()


@contextmanager
def served(environment: Any, **options: Any) -> Iterator[WorldServer]:
    """An environment behind a server in a thread, to the end of the block."""
    server = WorldServer(Worlds(environment, 1), "world", ("127.0.0.1", 0), **options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)
        server.close()
    assert not thread.is_alive()


class Gate:
    """Holds the thread that generates until it is opened."""

    def __init__(self, server: ModelServer):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.generate = server.engine.generate

    def __call__(self, requests: Any) -> Any:
        self.entered.set()
        assert self.opened.wait(PATIENCE)
        return self.generate(requests)


def becomes(batcher: Batcher, state: Callable[[], bool]) -> bool:
    """Wait for a state of the batcher's jobs; tell whether it came."""
    with batcher.changed:
        return batcher.changed.wait_for(state, PATIENCE)


def connect(server: ModelServer) -> socket.socket:
    return socket.create_connection(server.address, timeout=PATIENCE)


def post(content: Any, path: str = "/v1/completions") -> bytes:
    """The bytes of a request."""
    body = json.dumps(content).encode()
    return f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def answer(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Read an answer's status, headers and JSON."""
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        lines = (line.decode().lower().strip() for line in iter(file.readline, b"\r\n"))
        headers = dict(line.split(": ", 1) for line in lines)
        return status, headers, json.loads(file.read(int(headers["content-length"])))


def ends(connection: socket.socket) -> bool:
    """Whether the server closes a connection without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
