"""An engine around another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request
from assay.types import Episode, Prompt


class Wrapped:
    """Does as ``engine`` does; what is made of it says what it does otherwise.

    Nothing goes past it: several processes that would work together are not asked to.
    """

    divided = None

    def __init__(self, engine: Engine):
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.engine.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.engine.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.engine.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        return self.engine.generate(requests)
