"""``assay serve-env``."""

from __future__ import annotations

import os
import signal
from typing import Annotated, Any

from tyro.conf import Positional

from assay.cli.common import LOOPBACK, Overrides, interrupted, options_of
from assay.errors import UsageError


def serve_env(
    environment: Annotated[str, Positional],
    options: Overrides = (),
    port: int = 8000,
    host: str = "127.0.0.1",
    turns: int = 64,
    workers: int = 1,
    seconds: float = 60.0,
    api_key_env: str | None = None,
) -> int:
    """Serve an environment to whatever speaks OpenEnv's protocol, until Ctrl-C.

    assay serve-env guess most=9 --port 8000

    assay serve-env till.py:Till

    Example: assay serve-env guess most=9

    Args:
        environment: its name, or file.py:Class.
        options: of the environment, e.g. seed=3.
        port: 0 takes a free one, which is printed.
        host: 127.0.0.1 can be reached from this machine alone.
        turns: of an episode, at most.
        workers: processes that environments live in.
        seconds: of one step; one that takes longer has failed.
        api_key_env: environment variable with a key that clients must bring, as Authorization: Bearer.
    """
    from assay.environments.hosted.worlds import Worlds
    from assay.serve.worlds import WorldServer

    key = ""
    if api_key_env is not None:
        key = os.environ.get(api_key_env, "")
        if not key:
            raise UsageError(f"the environment variable {api_key_env}, named by --api-key-env, is not set")
    if min(turns, workers) < 1:
        raise UsageError(f"--turns {turns} and --workers {workers} must be at least 1")
    worlds = Worlds({"name": environment, **options_of(environment, options)}, workers, seconds)
    signal.signal(signal.SIGTERM, interrupted)
    server: Any = None
    try:
        server = WorldServer(worlds, environment, (host, port), turns, key)
        print(f"serving {environment} at {server.url}; Ctrl-C stops", flush=True)
        if host not in LOOPBACK and not key:
            print(f"anybody who can reach {host} can use it; --api-key-env sets a key", flush=True)
        server.run()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        worlds.close() if server is None else server.close()
    return 0
