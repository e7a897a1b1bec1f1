"""An engine without a model, which knows a reply to some words: a judge whose mind is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.errors import UsageError
from assay.registry import part
from assay.types import Episode


@part("engine", "keywords")
class Keywords:
    """Replies with the text of the first pattern that is found in a prompt.

    Args:
        replies: pairs of a pattern and a reply, in order; a pattern is a regular expression.
        otherwise: the reply where none is found.

    Raises:
        UsageError: a pattern that cannot be read.
    """

    def __init__(self, replies: Sequence[Sequence[str]], otherwise: str = ""):
        try:
            self.replies = [(re.compile(pattern), reply) for pattern, reply in replies]
        except (ValueError, TypeError, re.error) as error:
            raise UsageError(f"engine 'keywords': replies are pairs of a pattern and a reply ({error})") from None
        self.otherwise = otherwise

    def encode(self, prompt: Any) -> np.ndarray:
        return np.frombuffer(str(prompt).encode("utf-8", "replace"), np.uint8).astype(np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return bytes(np.asarray(tokens, dtype=np.uint8)).decode("utf-8", "replace")

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            text = next((reply for found, reply in self.replies if found.search(str(request.prompt))), self.otherwise)
            tokens = self.encode(text)
            made = Episode(self.encode(request.prompt), tokens, np.ones(len(tokens), dtype=bool), None, text, "eos")
            out.append([made] * request.n)
        return out
