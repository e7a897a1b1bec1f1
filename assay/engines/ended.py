"""Responses told of as they end, while others of the same call are still being made.

An engine that can, tells; whoever asks one may listen, in the thread that asks, and need not know which engine it is or
what stands between them. An engine that cannot is simply never heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from assay.engines.base import Request

Hear = Callable[[Request, str], None]
"""``hear(request, text)``: one of the request's responses has ended, and this is the text its episode will have."""

_hear: ContextVar[Hear | None] = ContextVar("hear", default=None)


def listener() -> Hear | None:
    """Return who listens to the calls of this thread, to be told from this thread alone; ``None`` if nobody does."""
    return _hear.get()


@contextmanager
def listening(hear: Hear | None) -> Iterator[None]:
    """Listen to what engines are asked in this thread meanwhile; ``None`` has nobody listen."""
    before = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(before)
