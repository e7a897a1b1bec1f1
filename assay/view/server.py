"""The server that a browser on this machine looks at."""

from __future__ import annotations

import secrets
import socket

import uvicorn

from assay.serve.listening import configured, listen, url_of
from assay.view.app import App
from assay.view.places import Places

HOST = "127.0.0.1"


class ViewServer:
    """Serves the viewer at 127.0.0.1. Once made it listens; what comes is answered while it runs.

    Args:
        places: what there is to look at.
        port: 0 takes a free one.

    Raises:
        UsageError: the port cannot be had, or DuckDB is not installed.
    """

    def __init__(self, places: Places, port: int = 0):
        self.socket: socket.socket = listen(HOST, port)
        address: tuple[str, int] = self.socket.getsockname()[:2]
        self.url, self.token = url_of(address), secrets.token_urlsafe(24)
        self.app = App(places, self.token, address[1])
        self.http = uvicorn.Server(configured(self.app))

    @property
    def link(self) -> str:
        """What to open: it lets in whoever has it."""
        return f"{self.url}/?token={self.token}"

    def run(self) -> None:
        """Answer until :meth:`stop` is called or a signal comes, which is raised again once connections are closed."""
        self.http.run(sockets=[self.socket])

    def stop(self) -> None:
        """Let :meth:`run`, in another thread, return."""
        self.http.should_exit = True

    def close(self) -> None:
        self.socket.close()
        self.app.tables.close()
