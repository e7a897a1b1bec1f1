"""What a response may be, where it must be one of a catalogue: token sequences as a prefix tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from assay.errors import UsageError


class Trie:
    """Token sequences by their prefixes. Nodes are numbers, 0 is the empty prefix; a *complete* node is a sequence.

    Args:
        sequences: token ids of each; one that is there already counts once.

    Raises:
        UsageError: no sequences, an empty one, or one that another begins with.
    """

    def __init__(self, sequences: Iterable[Sequence[int] | np.ndarray]):
        self.children: list[dict[int, int]] = [{}]
        self.depth = 0
        ends: dict[int, tuple[int, ...]] = {}
        for sequence in sequences:
            ids = tuple(int(token) for token in sequence)
            node = 0
            for token in ids:
                here = self.children[node]
                if token not in here:
                    here[token] = len(self.children)
                    self.children.append({})
                node = here[token]
            ends[node] = ids
            self.depth = max(self.depth, len(ids))
        if not ends or 0 in ends:
            raise UsageError("a catalogue needs one sequence of tokens or more, none of them empty")
        for node, ids in ends.items():
            if self.children[node]:
                raise UsageError(f"{list(ids)} is the beginning of a longer sequence; end each with an end token")
        self._size = len(ends)
        self._allowed = [np.fromiter(here, dtype=np.int64, count=len(here)) for here in self.children]
        self._complete = np.array([not here for here in self.children])

    def __len__(self) -> int:
        """Number of different sequences."""
        return self._size

    def __contains__(self, sequence: Sequence[int] | np.ndarray) -> bool:
        node: int | None = 0
        for token in sequence:
            node = None if node is None else self.children[node].get(int(token))
        return node is not None and bool(self._complete[node])

    def mask(self, nodes: np.ndarray, vocabulary: int) -> np.ndarray:
        """Return ``(B, vocabulary)`` bool, which tokens below ``vocabulary`` may follow at each of ``(B,)`` nodes."""
        distinct, of = np.unique(nodes, return_inverse=True)
        rows = np.zeros((len(distinct), vocabulary), dtype=bool)
        for row, node in zip(rows, distinct.tolist(), strict=True):
            here = self._allowed[node]
            row[here[here < vocabulary]] = True
        return np.asarray(rows[of])

    def follow(self, nodes: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the node that each token leads to; it must be allowed there."""
        pairs = zip(nodes.tolist(), tokens.tolist(), strict=True)
        return np.array([self.children[node][token] for node, token in pairs], dtype=np.int64)

    def complete(self, nodes: np.ndarray) -> np.ndarray:
        """Return ``(B,)`` bool, whether each node is a whole sequence."""
        return np.asarray(self._complete[nodes])
