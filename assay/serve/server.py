"""The HTTP server: connections in one thread, all generation in one other."""

from __future__ import annotations

import socket

import uvicorn

from assay.engines.hf import HFEngine
from assay.serve.app import App
from assay.serve.batcher import Batcher
from assay.serve.decoding import ServedEngine
from assay.serve.listening import configured, listen, url_of


class ModelServer:
    """Serves a model at ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions``, and ``/health``.

    Once made it listens; what comes is answered while it runs.

    Args:
        engine: with the model.
        name: of the model in requests.
        address: host and port; port 0 takes a free one.
        longest: ``max_tokens`` of a chat that does not say.
        key: that requests must bring, if any.

    Raises:
        UsageError: the address cannot be had.
    """

    def __init__(self, engine: HFEngine, name: str, address: tuple[str, int], longest: int = 1024, key: str = ""):
        self.name = name
        self.socket = listen(*address)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.engine = ServedEngine(engine)
        self.batcher = Batcher(self.engine)
        app = App(self.batcher, name, longest, key, lambda: len(self.http.server_state.connections))
        self.http = _Server(configured(app), self.batcher)

    @property
    def url(self) -> str:
        return f"{url_of(self.address)}/v1"

    def run(self) -> None:
        """Answer until :meth:`stop` is called or a signal comes, which is raised again once connections are closed."""
        self.http.run(sockets=[self.socket])

    def stop(self) -> None:
        """Let :meth:`run`, in another thread, return."""
        self.http.should_exit = True

    def close(self) -> None:
        """Stop at once: what is being generated is refused."""
        self.socket.close()
        self.batcher.stop()


class _Server(uvicorn.Server):
    """Refuses what is being generated as soon as it stops, so that connections close."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher):
        super().__init__(config)
        self.batcher = batcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.batcher.interrupt()
        await super().shutdown(sockets)
