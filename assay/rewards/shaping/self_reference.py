"""Failures are worth how near they came to the successes of the same batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.from_file import from_file
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Episode

Form = Literal["ranged", "standardised"]


@part("reward", "self_reference")
@dataclass(frozen=True, slots=True)
class SelfReference:
    """1 for a success; for a failure, by how far its embedding h_i is from where the successes of its task are:

        d_i = min over centres c of |h_i - c|
        ranged:         R = most sigmoid(10 (0.5 - (d - min d) / (max d - min d))),  0.5 most where all d are equal
        standardised:   R = sigmoid(-(d - mean d) / std d),  0.5 where all d are equal

    min, max, mean and std are over the task's failures in the batch. Centres are the means of clusters of its
    successes' embeddings (:func:`centres`). A task without a success, or without a failure, has rewards 0 and 1. An
    episode whose embedding is all zero is left out, and has 0 or 1. Abstentions have none.

    A task is what its id says before the last ``/``: worlds number the beginnings of one task there.

    Args:
        form: see above; ``ranged`` is the authors' code, ``standardised`` the paper's formula.
        most: of a failure, in ``ranged``.
        embedding: ``path``, ``places`` states of the episode's path, evenly spread and joined; or ``file.py:function``
            of an episode, such as an encoder of what was seen.
        places: at least 1.

    Raises:
        UsageError: an option out of range; when called, an episode without a path.

    Source: SRPO (arXiv 2511.15605) and its authors' code in siiRL.
    """

    form: Form = "ranged"
    most: float = 0.6
    embedding: str = "path"
    places: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.most <= 1 or self.places < 1:
            raise UsageError(f"reward 'self_reference': most {self.most:g} in (0, 1], places {self.places} >= 1")

    def __call__(self, batch: Batch) -> Reward:
        encode: Callable[[Episode], Any] = (
            self._path if self.embedding == "path" else from_file(self.embedding, "encoder")
        )
        valid = judged(batch)
        right = np.array([v.passed is True for v in batch.verdicts])
        values = right.astype(np.float64)
        embedded = {i: np.asarray(encode(batch.episodes[i]), dtype=np.float64) for i in valid.nonzero()[:, 0].tolist()}
        tasks: dict[str, list[int]] = {}
        for i, h in embedded.items():
            if h.any():
                tasks.setdefault(batch.tasks[i].id.rpartition("/")[0] or batch.tasks[i].id, []).append(i)
        for rows in tasks.values():
            good, bad = [i for i in rows if right[i]], [i for i in rows if not right[i]]
            if good and bad:
                middle = centres(np.stack([embedded[i] for i in good]))
                d = np.array([np.linalg.norm(middle - embedded[i], axis=1).min() for i in bad])
                values[bad] = self.worth(d)
        return Reward(torch.from_numpy(values).to(batch.rewards.dtype), valid=valid)

    def worth(self, d: np.ndarray) -> np.ndarray:
        """Return the rewards of a task's failures from their distances."""
        if self.form == "ranged":
            spread = d.max() - d.min()
            share = (d - d.min()) / spread if spread >= 1e-6 else np.full_like(d, 0.5)
            return self.most * _sigmoid(10 * (0.5 - share))
        spread = d.std()
        return _sigmoid((d.mean() - d) / spread) if spread >= 1e-6 else np.full_like(d, 0.5)

    def _path(self, episode: Episode) -> np.ndarray:
        if episode.path is None:
            raise UsageError(
                "reward 'self_reference' embeds steps of a policy of numbers; set model.source = control, or name an "
                "encoder, embedding = file.py:function"
            )
        places = np.linspace(0, len(episode.path) - 1, self.places).round().astype(int)
        return episode.path.after[places].reshape(-1)


def centres(successes: np.ndarray) -> np.ndarray:
    """Return the means ``(C, D)`` of the clusters of ``(M, D)``; their common mean where there is no cluster.

    Clusters are DBSCAN's, of radius 0.5 and at least 2 points, on what is standardised by each dimension (population
    standard deviation; a constant dimension is left as it is).
    """
    spread = successes.std(0)
    scaled = (successes - successes.mean(0)) / np.where(spread > 0, spread, 1.0)
    labels = dbscan(scaled, 0.5, 2)
    found = [successes[labels == label].mean(0) for label in range(labels.max() + 1)]
    return np.stack(found or [successes.mean(0)])


def dbscan(points: np.ndarray, radius: float, least: int) -> np.ndarray:
    """Return the cluster of each of ``(M, D)`` points, from 0, -1 for noise.

    A point with at least ``least`` points within ``radius``, itself among them, is a core; cores within ``radius`` of
    each other are of one cluster, and a point that is none belongs to the first cluster with a core that near.

    Source: M. Ester and others (1996).
    """
    near = np.linalg.norm(points[:, None] - points[None], axis=-1) <= radius
    core = near.sum(1) >= least
    labels = np.full(len(points), -1)
    for first in np.flatnonzero(core):
        if labels[first] >= 0:
            continue
        label, todo = labels.max() + 1, [int(first)]
        while todo:
            at = todo.pop()
            if labels[at] >= 0:
                continue
            labels[at] = label
            if core[at]:
                todo += np.flatnonzero(near[at] & (labels < 0)).tolist()
    return labels


def _sigmoid(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = 1 / (1 + np.exp(-x))
    return out
