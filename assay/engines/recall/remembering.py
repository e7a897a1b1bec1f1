"""Responses made once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.engines.base import Engine, Request
from assay.engines.wrapped import Wrapped
from assay.types import Episode


class Remembering(Wrapped):
    """An engine that answers a request it has answered before from memory, for as many responses or fewer.

    So strategies that begin with the same responses are compared on the very same, and these are made once.
    """

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._kept: dict[Any, list[Episode]] = {}

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        # How wide a beam search is changes what it finds.
        keys = [(repr(r.prompt), r.sampling, r.seed, r.prefix, r.within, r.n if r.beam else None) for r in requests]
        needed: dict[Any, Request] = {}
        for key, request in zip(keys, requests, strict=True):
            if len(self._kept.get(key, ())) < request.n and (key not in needed or needed[key].n < request.n):
                needed[key] = request
        if needed:
            for key, episodes in zip(needed, self.engine.generate(list(needed.values())), strict=True):
                self._kept[key] = episodes
        return [self._kept[key][: r.n] for key, r in zip(keys, requests, strict=True)]

    def forget(self) -> None:
        """Drop what is remembered."""
        self._kept.clear()
