"""Okapi BM25 over a corpus that fits in memory: one sparse matrix of term weights, one product a query."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csc_matrix

from assay.errors import UsageError

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case and compatibility form."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class BM25:
    """Ranks texts by the terms they share with a query.

        score(q, d) = sum over distinct t in q of  idf(t) f(t, d) (k1 + 1) / (f(t, d) + k1 (1 - b + b |d| / mean |d|))
        idf(t) = ln(1 + (N - n(t) + 1/2) / (n(t) + 1/2))

    f(t, d) is how often t stands in d, n(t) in how many of the N texts. The 1 within the logarithm keeps a term that
    stands in most texts from counting against them.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.

    Args:
        texts: what is ranked.
        k1: how late repetition stops counting, >= 0.
        b: how far long texts are discounted, in [0, 1].

    Raises:
        UsageError: an option out of range.
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75):
        if k1 < 0 or not 0 <= b <= 1:
            raise UsageError(f"BM25: k1 {k1:g} must be at least 0, and b {b:g} in [0, 1]")
        counts = [Counter(words(text)) for text in texts]
        self.terms = {term: i for i, term in enumerate(dict.fromkeys(t for count in counts for t in count))}
        rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        columns = np.array([self.terms[t] for count in counts for t in count], dtype=np.int64)
        often = np.array([n for count in counts for n in count.values()], dtype=np.float64)
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        spread = np.bincount(columns, minlength=len(self.terms))
        idf = np.log1p((len(counts) - spread + 0.5) / (spread + 0.5))
        norm = k1 * (1 - b + b * lengths / max(float(lengths.mean()) if len(counts) else 0.0, 1e-300))
        weights = idf[columns] * often * (k1 + 1) / (often + norm[rows])
        self.weights = csc_matrix((weights, (rows, columns)), shape=(len(counts), len(self.terms)))

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every text, ``(N,)``."""
        known = sorted({self.terms[t] for t in words(query) if t in self.terms})
        return np.asarray(self.weights[:, known].sum(axis=1), dtype=np.float64).ravel()

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return the k best texts and their scores, best first, of equal ones the earlier; none that shares no term."""
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")[:k]
        return [(int(i), float(scores[i])) for i in order if scores[i] > 0]
