"""An engine that answers by a function of what it is asked, and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.types import Episode


class Told:
    """Replies are ``answer(prompt, number of the reply)``; ``None`` is a request that fails, a text with a final
    ``...`` one that was cut off."""

    def __init__(self, answer: Callable[[str, int], str | None]):
        self.answer = answer
        self.asked: list[Request] = []
        self.calls: list[int] = []

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in str(prompt)], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.calls.append(len(requests))
        self.asked.extend(requests)
        return [[self._one(request, j) for j in range(request.n)] for request in requests]

    def _one(self, request: Request, number: int) -> Episode:
        text = self.answer(str(request.prompt), number)
        if text is None:
            empty = np.zeros(0, dtype=np.int64)
            return Episode(empty, empty, empty > 0, None, "", "error", meta={"error": "the server is away"})
        tokens = self.encode(text)
        stop: Any = "length" if text.endswith("...") else "eos"
        return Episode(self.encode(request.prompt), tokens, tokens > 0, None, text, stop)
