"""The transformers engine as a server needs it: tokens are told as they are drawn."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import torch

from assay.engines.hf import HFEngine
from assay.engines.stream import Row
from assay.errors import RunError

Drawn = Callable[[int, int, int, float], None]
"""Called with a request's number, a response's number, a token and its log-probability."""

Unwanted = Callable[[int], bool]
"""Tells of a request's number whether nobody waits for its responses any more."""


class ServedEngine(HFEngine):
    """Decodes as :class:`HFEngine` does, the same tokens for the same seed.

    Attributes:
        drawn: told of every token at once; nobody if ``None``.
        unwanted: asked at every token; the responses of requests that are unwanted end there.
        stopping: once set, what is being generated ends with a RunError at its next token.
    """

    def __init__(self, engine: HFEngine):
        super().__init__(engine.policy, engine.max_rows)
        self.drawn: Drawn | None = None
        self.unwanted: Unwanted | None = None
        self.stopping = threading.Event()

    def observe(
        self, rows: list[Row], live: np.ndarray, tokens: torch.Tensor, logprobs: torch.Tensor
    ) -> torch.Tensor | None:
        if self.stopping.is_set():
            raise RunError("the server is stopping")
        if self.drawn is not None:
            for i, token, value in zip(live.tolist(), tokens.tolist(), logprobs.tolist(), strict=True):
                self.drawn(rows[i].request, rows[i].sample, token, value)
        if self.unwanted is None:
            return None
        asked = [rows[i].request for i in live.tolist()]
        unwanted = {request for request in set(asked) if self.unwanted(request)}
        return torch.tensor([request in unwanted for request in asked], device=tokens.device) if unwanted else None
