"""The n-grams of a corpus as a Bloom filter: a few bits for each, at a known rate of false positives."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from assay.errors import UsageError
from assay.verify.grounding.ngrams import NGramIndex, _hashes

MAGIC = b"assay ngram bloom filter 1\n"
_CHUNK = 1 << 20
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.int64)


class BloomIndex(NGramIndex):
    """The n-grams of characters of some texts in m bits, of which each n-gram sets k.

        m = -c log e / (log 2)^2,   k = m / c log 2 (rounded)

    for ``capacity`` c and ``error`` e. No n-gram of the texts is ever missed. Another one is found by mistake with
    probability (1 - exp(-k d / m))^k, d the distinct n-grams put in, which is e for d = c: about 14.4 bits each for an
    error of 0.001. An n-gram does not run from one text into the next.

    Source: B. Bloom, "Space/time trade-offs in hash coding with allowable errors" (1970); for corpora, Data Portraits
    (Marone and Van Durme, 2023), whose filters for QUIP hold every n-gram of 25 characters.

    Args:
        texts: the corpus, read once where ``capacity`` is given, twice if not.
        n: characters of an n-gram, at least 1.
        error: e, between 0 and 1.
        capacity: n-grams there is room for; by default, as many as the texts have, repetitions counted.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(self, texts: Iterable[str], n: int = 25, error: float = 1e-3, capacity: int | None = None):
        if n < 1 or not 0 < error < 1 or (capacity is not None and capacity < 1):
            raise ValueError(f"n {n} and capacity {capacity} must be at least 1, error {error} between 0 and 1")
        if capacity is None:
            texts = list(texts)
            capacity = sum(max(len(text) - n + 1, 0) for text in texts)
        bits = max(math.ceil(-max(capacity, 1) * math.log(error) / math.log(2) ** 2), 8)
        self.n, self.size = n, bits
        self.functions = max(round(bits / max(capacity, 1) * math.log(2)), 1)
        self.bits = np.zeros(-(-bits // 8), np.uint8)
        for text in texts:
            hashes = _hashes(text, n)
            for start in range(0, len(hashes), _CHUNK):
                for byte, bit in self._places(hashes[start : start + _CHUNK]):
                    np.bitwise_or.at(self.bits, byte, bit)

    def __len__(self) -> int:
        """Distinct n-grams put in, estimated from how many bits are set: d = -m / k log(1 - set / m)."""
        share = min(self.filled, self.size - 1) / self.size
        return round(-self.size / self.functions * math.log1p(-share))

    @property
    def filled(self) -> int:
        """Number of bits that are set."""
        parts = (self.bits[i : i + _CHUNK] for i in range(0, len(self.bits), _CHUNK))
        return sum(int(_ONES @ np.bincount(part, minlength=256)) for part in parts)

    @property
    def nbytes(self) -> int:
        """Memory of the filter, in bytes."""
        return int(self.bits.nbytes)

    @property
    def error(self) -> float:
        """Rate at which n-grams that are not in the corpus are found, as filled: (set / m)^k."""
        return float((self.filled / self.size) ** self.functions)

    def found(self, text: str) -> np.ndarray:
        """Return whether each n-gram of ``text``, in order, is in the corpus: ``(max(len - n + 1, 0),)`` bool."""
        hashes = _hashes(text, self.n)
        out = np.ones(len(hashes), bool)
        for byte, bit in self._places(hashes):
            out &= (self.bits[byte] & bit) != 0
        return out

    def _places(self, hashes: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Yield the byte and the bit in it that each of the k functions gives to each hash.

        Function i is h + i g + (i^3 - i) / 6 modulo 2^64 and then m, with g drawn from h: enhanced double hashing,
        whose cubic term keeps the k places apart where g is a multiple of what divides m.
        """
        step = hashes ^ (hashes >> np.uint64(32))
        step = step * np.uint64(0xD6E8FEB86659FD93)
        step ^= step >> np.uint64(32)
        step |= np.uint64(1)
        for i in range(self.functions):
            place = (hashes + np.uint64(i) * step + np.uint64((i**3 - i) // 6)) % np.uint64(self.size)
            yield (place >> np.uint64(3)).astype(np.int64), np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)

    def save(self, path: Path | str) -> None:
        """Write the filter to one file."""
        head = json.dumps({"n": self.n, "size": self.size, "functions": self.functions}).encode()
        with open(path, "wb") as file:
            file.write(MAGIC + head + b"\n")
            self.bits.tofile(file)

    @classmethod
    def load(cls, path: Path | str) -> BloomIndex:
        """Return the filter in a file, mapped into memory and not read until it is asked.

        Raises:
            UsageError: the file cannot be read, or holds no filter or a part of one.
        """
        try:
            with open(path, "rb") as file:
                if file.readline() != MAGIC:
                    raise UsageError(f"{path} holds no filter of n-grams; make one with BloomIndex(...).save(path)")
                head = json.loads(file.readline())
                start = file.tell()
            index = cls.__new__(cls)
            index.n, index.size, index.functions = head["n"], head["size"], head["functions"]
            index.bits = np.memmap(path, np.uint8, "r", start, (-(-index.size // 8),))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"the filter of n-grams in {path} cannot be read: {error}") from None
        return index
