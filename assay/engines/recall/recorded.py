"""Responses on record in place of new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.engines.wrapped import Wrapped
from assay.types import Episode, Prompt


class Recorded(Wrapped):
    """An engine that answers some prompts from responses on record; anything else it has another engine answer.

    A request for n whole responses to a prompt that has R >= n of them, drawn as they were, gets n of them without
    replacement; its seed says which, and those of a smaller n come first in those of a larger one.

    Args:
        engine: asked for all others: other prompts, another sampling, continuations, more responses.
        responses: on record, by :func:`key` of their prompt.
        sampling: how they were drawn.
    """

    def __init__(self, engine: Engine, responses: Mapping[str, Sequence[Episode]], sampling: Sampling):
        super().__init__(engine)
        self._responses, self._sampling = responses, sampling

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        found = [self._drawn(request) for request in requests]
        asked = [request for request, drawn in zip(requests, found, strict=True) if drawn is None]
        made = iter(self.engine.generate(asked) if asked else ())
        return [next(made) if drawn is None else drawn for drawn in found]

    def _drawn(self, request: Request) -> list[Episode] | None:
        kept = self._responses.get(key(request.prompt), ())
        whole = not (request.prefix or request.within or request.beam or request.session)
        if not whole or request.sampling != self._sampling or request.n > len(kept):
            return None
        order = np.random.default_rng(request.seed).permutation(len(kept))
        return [kept[i] for i in order[: request.n]]


def key(prompt: Prompt) -> str:
    """Return what a prompt is known by."""
    return repr(prompt)
