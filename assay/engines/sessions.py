"""Keys and values that stay from one turn of a conversation to the next, so that a turn costs only its new tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Kept:
    """Tokens that a model has read, and what it keeps of them.

    Attributes:
        tokens: the first ``n`` of a conversation.
        pieces: their keys and values, one piece after the other, ``n`` columns in all.
    """

    tokens: Int[np.ndarray, "n"]
    pieces: tuple[Float[Tensor, "layers 2 H_kv _ D"], ...]

    @property
    def bytes(self) -> int:
        return sum(piece.numel() * piece.element_size() for piece in self.pieces)

    @classmethod
    def after(cls, before: Kept | None, tokens: Int[np.ndarray, "n"], piece: Tensor) -> Kept:
        """Return what is kept of ``tokens``, of which ``piece`` is what was not kept ``before``; it is copied."""
        return cls(tokens, (*(() if before is None else before.pieces), piece.clone()))

    def first(self, count: int) -> Kept:
        """Return what is kept of the first ``count`` tokens."""
        pieces, left = [], count
        for piece in self.pieces:
            if left > 0:
                pieces.append(piece[..., :left, :])
            left -= piece.shape[3]
        return Kept(self.tokens[:count], tuple(pieces))


class Sessions:
    """What is kept, by session, for one state of a model's weights.

    What does not fit is not kept, and computed again when it is wanted: turns of many conversations come in rounds, in
    which whatever was used longest ago is what is wanted next.

    Args:
        most: bytes in all.
    """

    def __init__(self, most: int):
        self.most = most
        self._kept: dict[str, Kept] = {}
        self._bytes = 0
        self._weights: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, weights: Sequence[Tensor]) -> None:
        """Drop everything unless these are the weights of the call before, unchanged."""
        now = tuple(x for w in weights for x in (id(w), w._version))
        if now != self._weights:
            self.clear()
            self._weights = now

    def take(self, session: str, tokens: Int[np.ndarray, "P"]) -> Kept | None:
        """Hand out what is kept of a conversation's tokens, the last of them apart, if anything is."""
        kept = self.end(session)
        if kept is None:
            return None
        common = min(len(kept.tokens), len(tokens) - 1)
        differs = np.flatnonzero(kept.tokens[:common] != tokens[:common])
        common = int(differs[0]) if len(differs) else common
        return kept.first(common) if common else None

    def keep(self, session: str, kept: Kept) -> None:
        """Keep it if there is room."""
        self.end(session)
        if self._bytes + kept.bytes <= self.most:
            self._kept[session] = kept
            self._bytes += kept.bytes

    def end(self, session: str) -> Kept | None:
        """Drop a session; return what was kept."""
        kept = self._kept.pop(session, None)
        if kept is not None:
            self._bytes -= kept.bytes
        return kept

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._bytes = 0
