"""The HTTP server: connections in one thread, all generation in one other."""

from __future__ import annotations

import socket

import uvicorn

from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.serve import limits
from assay.serve.app import App
from assay.serve.batcher import Batcher
from assay.serve.connection import Connection
from assay.serve.decoding import ServedEngine


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
        self.socket = _listen(*address)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.engine = ServedEngine(engine)
        self.batcher = Batcher(self.engine)
        app = App(self.batcher, name, longest, key, lambda: len(self.http.server_state.connections))
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            interface="asgi3",
            # The application tells of its faults itself, and requests are not logged: they may hold what should not be
            # in a log.
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("server", "assay")],
            timeout_keep_alive=limits.IDLE,
            timeout_graceful_shutdown=limits.CLOSING,
        )
        self.http = _Server(config, self.batcher)

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"

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


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot serve at {host}:{port}: {reason}; take another --port") from error
