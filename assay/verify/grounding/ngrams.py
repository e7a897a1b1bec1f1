"""Which n-grams of a text stand in a corpus: an index of hashes, and the shares of a text that it finds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_MIX = np.uint64(0x9E3779B97F4A7C15)


def _hashes(text: str, n: int) -> np.ndarray:
    """64-bit hashes of the n-grams of characters of ``text``, in order: ``(max(len - n + 1, 0),)`` uint64."""
    if len(text) < n:
        return np.empty(0, np.uint64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    # Horner's rule over n shifted views, each step followed by a bijective mixing (splitmix64's), so that no
    # arrangement of characters makes two n-grams collide more often than chance.
    total = np.zeros(len(codes) - n + 1, np.uint64)
    for i in range(n):
        total += codes[i : len(codes) - n + 1 + i] + _MIX
        total ^= total >> np.uint64(30)
        total *= np.uint64(0xBF58476D1CE4E5B9)
        total ^= total >> np.uint64(27)
        total *= np.uint64(0x94D049BB133111EB)
        total ^= total >> np.uint64(31)
    return total


class NGramIndex:
    """The n-grams of characters of some texts, as sorted 64-bit hashes: 8 bytes for each distinct one.

    No n-gram of the texts is ever missed; another is found by mistake with probability (distinct n-grams) / 2^64. An
    n-gram does not run from one text into the next.

    Args:
        texts: the corpus.
        n: characters of an n-gram, at least 1.
    """

    def __init__(self, texts: Iterable[str], n: int = 25):
        if n < 1:
            raise ValueError(f"n {n} must be at least 1")
        self.n = n
        self.hashes = np.unique(np.concatenate([np.empty(0, np.uint64), *(_hashes(text, n) for text in texts)]))

    def __len__(self) -> int:
        return len(self.hashes)

    def found(self, text: str) -> np.ndarray:
        """Return whether each n-gram of ``text``, in order, is in the corpus: ``(max(len - n + 1, 0),)`` bool."""
        sought = _hashes(text, self.n)
        if not len(self.hashes):
            return np.zeros(len(sought), bool)
        places = np.searchsorted(self.hashes, sought).clip(max=len(self.hashes) - 1)
        return self.hashes[places] == sought

    def quip(self, text: str) -> float:
        """QUIP score: the share of the n-grams of ``text`` in the corpus, repetitions counted; 0 for shorter texts."""
        found = self.found(text)
        return float(found.mean()) if len(found) else 0.0

    def coverage(self, text: str) -> float:
        """Share of characters of ``text`` that are inside an n-gram of the corpus: in a verbatim match of n or more.

        A run of k > 1 consecutive n-grams counts as one match of n + k - 1 characters, though its pieces may come from
        different places of the corpus.
        """
        found = self.found(text)
        if not len(found):
            return 0.0
        # +1 where an n-gram that is found starts, -1 after its end; inside where the running sum is positive.
        edges = np.zeros(len(text) + 1, np.int64)
        edges[: len(found)] += found
        edges[self.n : self.n + len(found)] -= found
        return float((np.cumsum(edges[:-1]) > 0).mean())
