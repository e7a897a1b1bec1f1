"""The HTTP server: one thread a connection, all generation in one other."""

from __future__ import annotations

import socket
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.serve.asked import Asked, Refusal
from assay.serve.batcher import Batcher
from assay.serve.decoding import ServedEngine, Tokens
from assay.serve.handler import Handler


class ModelServer(ThreadingHTTPServer):
    """Serves a model at ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions``, and ``/health``.

    Args:
        engine: with the model.
        name: of the model in requests.
        address: host and port; port 0 takes a free one.
        longest: ``max_tokens`` of a chat that does not say.
        key: that requests must bring, if any.

    Raises:
        UsageError: the address cannot be had.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, engine: HFEngine, name: str, address: tuple[str, int], longest: int = 1024, key: str = ""):
        self.name, self.longest, self.key = name, longest, key
        self.made = int(time.time())
        self.engine = ServedEngine(engine)
        self.tokenizing = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        try:
            super().__init__(address, Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot serve at {address[0]}:{address[1]}: {reason}; take another --port") from error
        self.batcher = Batcher(self.engine)

    @property
    def url(self) -> str:
        host, port = self.server_address[0], self.server_address[1]
        shown = str(host)
        return f"http://[{shown}]:{port}/v1" if ":" in shown else f"http://{shown}:{port}/v1"

    def close(self) -> None:
        """Stop at once: what is being generated is refused."""
        self.server_close()
        self.batcher.stop()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless it is a client that went away."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def requests(self, asked: Asked) -> list[Request]:
        """Return what to generate.

        Raises:
            Refusal: a prompt does not fit, or is none.
        """
        fields, policy = asked.fields, self.engine.policy
        sampling = Sampling(asked.max_tokens, fields.temperature, fields.top_p, max(0, fields.top_k), fields.stops)
        out = []
        for i, prompt in enumerate(asked.prompts):
            ids = self._encode(asked, prompt)
            if len(ids) >= policy.context:
                raise Refusal(
                    f"a prompt of {len(ids)} tokens leaves no room for a response in the model's context of "
                    f"{policy.context}",
                    "messages" if asked.chat else "prompt",
                    code="context_length_exceeded",
                )
            out.append(Request(Tokens(ids), fields.n, sampling, asked.seed + i))
        return out

    def _encode(self, asked: Asked, prompt: Any) -> np.ndarray:
        policy = self.engine.policy
        # A fast tokenizer must not be used by two threads at once.
        with self.tokenizing:
            if asked.chat:
                try:
                    ids = self.engine.encode(prompt)
                except UsageError as error:
                    raise Refusal(str(error), "messages") from None
                return (
                    np.concatenate([ids, self.engine.encode_response(asked.begun, end=False)]) if asked.begun else ids
                )
            if isinstance(prompt, str):
                return np.asarray(policy.tokenizer(prompt)["input_ids"] or [policy.stop_ids[0]], dtype=np.int64)
        outside = [t for t in prompt if not 0 <= t < len(policy.head.weight)]
        if outside:
            raise Refusal(f"prompt: the model has no token {outside[0]}", "prompt")
        return np.asarray(prompt, dtype=np.int64)
