"""Responses made once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request
from assay.types import Episode


class Remembering:
    """An engine that answers a request it has answered before from memory, for as many responses or fewer.

    So strategies that begin with the same responses are compared on the very same, and these are made once.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._kept: dict[Any, list[Episode]] = {}

    divided = None  # nothing goes past this engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def encode(self, prompt: Any) -> np.ndarray:
        return self._engine.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self._engine.encode_response(text, end)

    def decode(self, tokens: Any) -> str:
        return self._engine.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        # How wide a beam search is changes what it finds.
        keys = [(repr(r.prompt), r.sampling, r.seed, r.prefix, r.within, r.n if r.beam else None) for r in requests]
        needed: dict[Any, Request] = {}
        for key, request in zip(keys, requests, strict=True):
            if len(self._kept.get(key, ())) < request.n and (key not in needed or needed[key].n < request.n):
                needed[key] = request
        if needed:
            for key, episodes in zip(needed, self._engine.generate(list(needed.values())), strict=True):
                self._kept[key] = episodes
        return [self._kept[key][: r.n] for key, r in zip(keys, requests, strict=True)]

    def forget(self) -> None:
        """Drop what is remembered."""
        self._kept.clear()
