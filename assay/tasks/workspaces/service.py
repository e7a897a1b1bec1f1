"""A service that work needs: what it answers at each path, and how often it fails before it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUSY = 503, "busy, try again"
LONGEST = 2000
"""Characters of a path that are read."""


class Service:
    """Answers paths; each path fails ``failures`` times, with 503, before it answers.

    Args:
        routes: the answer at each path, or a function of the path, which gives ``None`` for one there is not.
        failures: of each path.

    Attributes:
        asked: paths in the order asked, each with the status of its answer.
    """

    def __init__(self, routes: Mapping[str, str] | Callable[[str], str | None], failures: int = 0):
        self.of: Callable[[str], str | None] = routes if callable(routes) else routes.get
        self.failures = failures
        self.asked: list[tuple[str, int]] = []

    def answer(self, path: str) -> tuple[int, str]:
        """Return status and body."""
        path = path[:LONGEST]
        body = self.of(path)
        failed = sum(p == path and status == BUSY[0] for p, status in self.asked)
        made = (404, f"there is nothing at {path}") if body is None else BUSY if failed < self.failures else (200, body)
        self.asked.append((path, made[0]))
        return made


class Served:
    """A service at a free port of this machine, for programs; use as a context."""

    def __init__(self, service: Service):
        handler = type("Handler", (_Handler,), {"service": service, "lock": threading.Lock()})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, name="service", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self) -> Served:
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    service: Service
    lock: threading.Lock

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        with self.lock:
            status, text = self.service.answer(self.path)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
