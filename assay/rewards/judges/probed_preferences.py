"""A reward model's scores, with how far each response is from what the model knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.judges.dimensions import Clusters
from assay.rewards.judges.preference_model import PreferenceModel


@part("reward", "probed_preferences")
class ProbedPreferences:
    """R_i = r(x, y_i), as of ``preference_model``; terms ``score`` and ``distance``, d of the state it was read off.

    d = min over dimensions and their centres of ||h - c||; select ``reward_term`` leaves out what is too far away.

    Source: MRMBench (arXiv 2511.12464), inference-time probing.

    Args:
        source, max_length, token_budget, device: of :class:`~assay.rewards.judges.preference_model.PreferenceModel`.
        clusters: the file, see :class:`~assay.rewards.judges.dimensions.Clusters`, or what is in one.

    Raises:
        UsageError: no such model, or a file that is none.
    """

    def __init__(
        self,
        source: str | Path,
        clusters: Any,
        max_length: int | None = None,
        token_budget: int = 8192,
        device: str | None = None,
    ):
        self.model = PreferenceModel(source, max_length, token_budget, device)
        self.clusters: Clusters = clusters if isinstance(clusters, Clusters) else Clusters.load(clusters)

    def __call__(self, batch: Batch) -> Reward:
        found = self.model.read([(t.prompt, e.text) for t, e in zip(batch.tasks, batch.episodes, strict=True)])
        values, distance = torch.zeros_like(batch.rewards), torch.zeros_like(batch.rewards)
        fits = torch.tensor([x is not None for x in found], dtype=torch.bool)
        if known := [x for x in found if x is not None]:
            states = torch.stack([h for _, h in known])
            width = next(iter(self.clusters.centres.values())).shape[1]
            if states.shape[1] != width:
                raise RunError(
                    f"the clusters are of states with {width} numbers, the reward model's have {states.shape[1]}"
                )
            values[fits] = torch.tensor([score for score, _ in known], dtype=values.dtype)
            distance[fits] = self.clusters.nearest(states).to(distance.dtype)
        return Reward(values, valid=judged(batch) & fits, terms={"score": values, "distance": distance})
