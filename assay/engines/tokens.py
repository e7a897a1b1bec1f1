"""A prompt that is tokens already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Tokens(str):
    """A prompt as token ids; an engine takes it as it is."""

    ids: np.ndarray

    def __new__(cls, ids: Sequence[int] | np.ndarray) -> Tokens:
        made = super().__new__(cls, f"{len(ids)} tokens")
        made.ids = np.asarray(ids, dtype=np.int64)
        return made

    def __getnewargs__(self) -> tuple[list[int]]:  # type: ignore[override]
        return (self.ids.tolist(),)
