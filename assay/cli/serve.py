"""``assay serve``."""

from __future__ import annotations

import os
import signal
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import LOOPBACK, Overrides, interrupted
from assay.errors import UsageError


def serve(
    model: Annotated[str, Positional],
    overrides: Overrides = (),
    port: int = 8000,
    host: str = "127.0.0.1",
    name: str | None = None,
    max_tokens: int = 1024,
    api_key_env: str | None = None,
) -> int:
    """Serve a model to whatever speaks OpenAI's protocol, until Ctrl-C.

    assay serve runs/gsm8k --port 8000

    assay eval openai:runs/gsm8k@http://127.0.0.1:8000/v1

    Example: assay serve runs/gsm8k --port 8000

    Args:
        model: a run folder, a recipe, or a model (hub id, folder, GGUF file, nano).
        overrides: changes to its configuration, e.g. model.dtype=bfloat16.
        port: 0 takes a free one, which is printed.
        host: 127.0.0.1 can be reached from this machine alone.
        name: of the model in requests; as it is written here unless given.
        max_tokens: longest response where a chat does not say.
        api_key_env: environment variable with a key that requests must bring.
    """
    from assay.engines.hf import HFEngine
    from assay.engines.target import resolve
    from assay.serve.server import ModelServer

    key = ""
    if api_key_env is not None:
        key = os.environ.get(api_key_env, "")
        if not key:
            raise UsageError(f"the environment variable {api_key_env}, named by --api-key-env, is not set")
    if max_tokens < 1:
        raise UsageError(f"--max-tokens must be positive, not {max_tokens}")
    if model.startswith("openai:"):
        raise UsageError(f"{model} is served already; name a model that is here")
    engine = resolve(model, [*overrides, "engine=hf"]).open()
    if not isinstance(engine, HFEngine):
        raise UsageError(f"{model} cannot be served: its engine is not hf")
    server = ModelServer(engine, name or model, (host, port), max_tokens, key)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        print(f"serving {server.name} at {server.url}; Ctrl-C stops", flush=True)
        if host not in LOOPBACK and not key:
            print(f"anybody who can reach {host} can use it; --api-key-env sets a key", flush=True)
        server.run()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.close()
    return 0
