"""Where a server listens, and what all servers here have in common."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn

from assay.errors import UsageError
from assay.serve import limits
from assay.serve.connection import Connection


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises:
        UsageError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot serve at {host}:{port}: {reason}; take another --port") from error


def url_of(address: tuple[str, int]) -> str:
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def configured(app: Any, ws: Any = "none", **more: Any) -> uvicorn.Config:
    """Return how an application is served: within the limits, and without a log.

    Args:
        app: tells of its faults itself; requests are not logged, since they may hold what should not be in a log.
        ws: what speaks WebSocket, if anything.
        more: as uvicorn has it.
    """
    return uvicorn.Config(
        app,
        http=Connection,
        ws=ws,
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("server", "assay")],
        timeout_keep_alive=limits.IDLE,
        timeout_graceful_shutdown=limits.CLOSING,
        **more,
    )
