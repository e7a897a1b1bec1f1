"""Of the tasks without labels, those that are learned as the labelled ones are: by their pass rates over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.outcome.by_label import is_labelled

SAME = 1e-6
"""A history whose rates are together no further from their mean does not vary: it is one of equal rates, rounded."""


@part("select", "trajectory")
class Trajectory:
    """Weight 1 for labelled tasks, and for unlabelled ones whose history resembles theirs; else 0.

    Each time a task is asked, the mean reward of its responses is appended to its history: of an unlabelled one, how
    many agree with its pseudo-label, 0 where it has none. The database holds the histories of labelled tasks and, with
    ``update``, of unlabelled ones kept before. All are cut to the first T entries, T the length of the shortest, and

        z(h) = (h - mean h) / std h,   s(u) = mean (or max) over d of cos(z(u), z(d));

    the cosine with a history that does not vary is 0, so that T = 1 gives s = 0. A task is
    not compared with itself. Kept are those with s >= threshold, and the best ``top`` share of the batch's unlabelled
    tasks (rounded down, at least one). Until a task has been asked more than ``warm_up`` times it is not learned from.
    Histories are in the checkpoint.

    Source: TraPO (arXiv 2512.13106) and its authors' code.

    Args:
        warm_up: times a task is asked before it may be kept, at least 0.
        threshold: of s.
        top: in [0, 1]; 0 keeps none but by the threshold.
        over: the database, by ``mean`` or ``max``.
        update: see above.

    Raises:
        UsageError: ``warm_up`` or ``top`` out of range.
    """

    def __init__(
        self,
        warm_up: int = 8,
        threshold: float = 0.4,
        top: float = 0.1,
        over: Literal["mean", "max"] = "mean",
        update: bool = True,
    ):
        if warm_up < 0 or not 0 <= top <= 1:
            raise UsageError(f"select 'trajectory': needs warm_up >= 0 and top in [0, 1], not {warm_up} and {top:g}")
        self.warm_up, self.threshold, self.top, self.over, self.update = warm_up, threshold, top, over, update
        self.histories: dict[str, list[float]] = {}
        self.database: dict[str, None] = {}

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        # Beside failures of the verifier, what has no reward is what has no pseudo-label: nobody agrees with it.
        told = judged(batch) | torch.tensor([t.reference is None for t in batch.tasks], dtype=torch.bool)
        rates = torch.where(batch.valid, batch.rewards, 0)
        weights, open_ = torch.zeros_like(batch.rewards), dict[str, Tensor]()
        for one in batch.prompt_group.unique():
            rows = batch.prompt_group == one
            task = batch.tasks[int(rows.nonzero()[0, 0])]
            labelled = is_labelled(task)
            seen = rows & (batch.valid if labelled else told)
            if bool(seen.any()):
                self.histories.setdefault(task.id, []).append(float(rates[seen].mean()))
            if labelled:
                weights[rows] = 1
                if task.id in self.histories:
                    self.database[task.id] = None
            elif len(self.histories.get(task.id, ())) > self.warm_up:
                open_[task.id] = open_.get(task.id, torch.zeros_like(rows)) | rows
        for key in self.kept(list(open_)):
            weights[open_[key]] = 1
            if self.update:
                self.database[key] = None
        return weights

    def kept(self, keys: Sequence[str]) -> list[str]:
        """Return which of these tasks resemble the database."""
        scores = {}
        for key in keys:
            others = [self.histories[d] for d in self.database if d != key]
            length = min(map(len, [*others, *(self.histories[k] for k in keys)]), default=0)
            scores[key] = similarity(self.histories[key][:length], [h[:length] for h in others], self.over)
        best = sorted(keys, key=lambda k: -scores[k])[: max(int(self.top * len(keys)), 1) if self.top else 0]
        return [k for k in keys if scores[k] >= self.threshold or k in best]

    def state_dict(self) -> dict[str, Any]:
        return {"histories": {k: list(h) for k, h in self.histories.items()}, "database": list(self.database)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.histories = {k: list(h) for k, h in state["histories"].items()}
        self.database = dict.fromkeys(state["database"])


def similarity(
    history: Sequence[float], database: Sequence[Sequence[float]], over: Literal["mean", "max"] = "mean"
) -> float:
    """Return s of a history, see :class:`Trajectory`; all are of one length. 0 without a database."""
    if not database:
        return 0.0
    mine = standardised(history)
    cosines = [float(mine @ standardised(other)) for other in database]
    return max(cosines) if over == "max" else float(np.mean(cosines))


def standardised(history: Sequence[float]) -> np.ndarray:
    """Return a history less its mean, of length 1 (a deviation cancels from cosines); zeros where it does not vary."""
    values = np.asarray(history, dtype=np.float64)
    gaps: np.ndarray = values - values.mean() if len(values) else values
    norm = np.linalg.norm(gaps)
    return gaps / norm if norm > SAME else 0 * gaps
