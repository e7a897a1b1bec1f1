"""Responses made in pieces: a beginning, and what continues it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.engines.base import Engine
from assay.types import Episode


def joined(head: Episode | None, rest: Episode, engine: Engine) -> Episode:
    """Return a continuation together with the beginning it goes on from, as one response to the plain prompt.

    Where the engine reports nothing of one of the two, nothing is known of both.
    """
    if head is None:
        return rest

    def both(name: str) -> Any:
        a, b = getattr(head, name), getattr(rest, name)
        return None if a is None or b is None else np.concatenate([a, b])

    tokens = np.concatenate([head.tokens, rest.tokens])
    return replace(
        rest,
        prompt=head.prompt,
        tokens=tokens,
        mask=np.concatenate([head.mask, rest.mask]),
        logprobs=both("logprobs"),
        entropies=both("entropies"),
        text=engine.decode(tokens),
        origins=None,
        spans=(),
    )


def stopped(episode: Episode, stops: Sequence[str], engine: Engine, before: Sequence[int] = ()) -> Episode:
    """Return a response as far as the first stop string in it, which may begin in one of its pieces and end in
    another.

    Args:
        episode: of a piece, its own tokens alone.
        before: the response's tokens before that piece.
    """

    def there(length: int) -> bool:
        text = engine.decode([*before, *episode.tokens[:length].tolist()])
        return any(s in text for s in stops)

    if not stops or not there(len(episode.tokens)):
        return episode
    length = bisect_left(range(1, len(episode.tokens)), True, key=there) + 1
    return episode if length >= len(episode.tokens) else beginning(episode, length, engine)


def beginning(episode: Episode, length: int, engine: Engine) -> Episode:
    """Return the first ``length`` tokens of a response, as one that stopped there."""
    tokens = episode.tokens[:length]
    return replace(
        episode,
        tokens=tokens,
        mask=episode.mask[:length],
        logprobs=None if episode.logprobs is None else episode.logprobs[:length],
        entropies=None if episode.entropies is None else episode.entropies[:length],
        text=engine.decode(tokens),
        stop="stop",
        origins=None,
        spans=(),
    )
