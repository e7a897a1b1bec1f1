"""Passages of a document that speak of the same, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.errors import RunError, UsageError
from assay.tasks.chunks import sized_chunks
from assay.tasks.making.work import Dropped, Here, child
from assay.types import Task


def by_cosine(vectors: np.ndarray, similarity: float = 0.7, least: int = 4, samples: int = 2) -> np.ndarray:
    """Return the cluster of each of ``(N, D)`` vectors, a number from 0, and -1 for those of none.

    By HDBSCAN on 1 less their cosine, which is 1 where one of them has no length.

    Args:
        vectors: of any length.
        similarity: clusters are not divided above this cosine.
        least: vectors of a cluster, at least 2.
        samples: neighbours, itself among them, that say how dense it is around a vector.

    Raises:
        UsageError: the library hdbscan is not there.

    Source: R. Campello and others (2013); the bound on dividing: C. Malzer and M. Baum (arXiv 1911.02282).
    """
    made = clusterer(least, samples, 1 - similarity)
    if len(vectors) < max(least, samples):
        return np.full(len(vectors), -1)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    distances = (1 - scaled @ scaled.T).clip(0, 2)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(made.fit_predict((distances + distances.T) / 2))


def clusterer(least: int, samples: int, epsilon: float) -> Any:
    """Return HDBSCAN on given distances.

    Raises:
        UsageError: the library is not there.
    """
    try:
        from hdbscan import HDBSCAN
    except ImportError:
        raise UsageError("clusters of passages need hdbscan: pip install 'assay[embeddings]'") from None
    # scikit-learn's own fails where a cluster begins below epsilon.
    return HDBSCAN(least, samples, cluster_selection_epsilon=epsilon, metric="precomputed")


@dataclass(frozen=True, slots=True)
class Clustered:
    """Replaces a document, which is a task's prompt, by its clusters: a task for each, to be asked about.

    The document is cut into passages (:func:`~assay.tasks.chunks.sized_chunks`), which are embedded and clustered
    (:func:`by_cosine`). What it makes has ``meta["passages"]``, those of the document, and ``meta["cluster"]``, the
    numbers of those in the cluster, in order. Clusters of more than ``largest`` passages are none. A document with
    fewer than ``fewest`` is left out, and of more than ``taken`` so many are drawn.

    Args:
        embed: gives the embeddings ``(N, D)`` of n texts.
        most: characters of a passage.
        similarity, least, samples: see :func:`by_cosine`.
        largest, fewest, taken: see above.

    Raises:
        UsageError: a number out of range, or the library hdbscan is not there.
        RunError: not one row of finite numbers for each text.

    Source: LongRLVR (arXiv 2603.02146) and its authors' code, whose passages have at most 512 tokens.
    """

    embed: Callable[[list[str]], Any]
    most: int = 2000
    similarity: float = 0.7
    least: int = 4
    samples: int = 2
    largest: int = 16
    fewest: int = 4
    taken: int = 4

    def __post_init__(self) -> None:
        if min(self.most, self.samples, self.fewest, self.taken) < 1 or not 2 <= self.least <= self.largest:
            raise UsageError(
                "step clusters: most, samples, fewest and taken must be at least 1, and 2 <= least <= largest"
            )
        if not 0 <= self.similarity <= 1:
            raise UsageError(f"step clusters: similarity {self.similarity:g} must lie in [0, 1]")
        clusterer(self.least, self.samples, 1 - self.similarity)

    def __call__(self, task: Task, here: Here) -> list[Task] | Dropped:
        passages = [text for piece in sized_chunks(task.question, self.most) if (text := piece.strip())]
        found = self.groups(passages)
        if len(found) < self.fewest:
            return Dropped(f"fewer than {self.fewest} clusters of passages")
        chosen = sorted(here.rng.permutation(len(found))[: self.taken].tolist())
        return [
            child(
                task,
                "cluster",
                k,
                kind="none",
                reference=None,
                solution=None,
                hints=(),
                meta={"passages": tuple(passages), "cluster": tuple(found[i])},
            )
            for k, i in enumerate(chosen)
        ]

    def groups(self, passages: list[str]) -> list[list[int]]:
        """Return the numbers of the passages of each cluster, by the first of them."""
        if len(passages) < self.least:
            return []
        vectors = np.asarray(self.embed(passages), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(passages) or not np.isfinite(vectors).all():
            raise RunError(
                f"step clusters: the embeddings of {len(passages)} passages have the shape {vectors.shape}, or numbers "
                "that are not finite; give one row for each"
            )
        labels = by_cosine(vectors, self.similarity, self.least, self.samples)
        rows = [np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels.tolist()) if label >= 0]
        return [row for row in rows if len(row) <= self.largest]
