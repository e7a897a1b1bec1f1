"""Trajectories of four stages whose later ones show what the first was worth, and a judge of stages that errs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import norm, rankdata

from assay.batch import Batch
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Credit of stages is computed from a judge's scores; nobody acts.

    The plan of a trajectory is worth q, standard normal. What its later stages are worth is ``carries`` q and chance of
    their own, of variance 1 together. The judge has ``items`` criteria of each stage, which ask for more and more; it
    finds one met if the stage's worth and an error of standard deviation ``noise`` are together above what it asks for,
    and scores the share that is met. An arm names its credit, of stages of one token each.

    Args:
        groups, n: of trajectories.
        carries: correlation of a later stage's worth with the plan's.
        noise: of the judge.
        items: by stage.
    """

    groups: int = 200
    n: int = 8
    carries: float = 0.6
    noise: float = 1.0
    items: Sequence[int] = (3, 2, 2, 3)

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``ranking``: the rank correlation of the plans' advantages with what they are worth, a mean over
        groups, 0 for one in which advantages do not differ; ``last``: that of the last stage's with its own worth."""
        rng = np.random.default_rng([seed, 71])
        stages = len(self.items)
        worth = rng.standard_normal((self.groups, self.n, stages))
        worth[..., 1:] = self.carries * worth[..., :1] + np.sqrt(1 - self.carries**2) * worth[..., 1:]
        scores = np.stack([self._scores(worth[..., k], count, rng) for k, count in enumerate(self.items)], -1)
        none, tokens = np.zeros(0, dtype=np.int64), np.arange(stages)
        episode = Episode(none, tokens, np.ones(stages, dtype=bool), None, "", "eos")
        verdicts = (Verdict(0.0, False),) * self.n
        asked = [Group(Ask(Task(str(g), ""), self.n), (episode,) * self.n, verdicts) for g in range(self.groups)]
        batch = Batch.from_groups(asked, torch.float64)
        batch.token_rewards = torch.from_numpy(scores.reshape(-1, stages))
        batch.rewards = torch.zeros(len(batch), dtype=torch.float64)
        batch.signals["stages"] = torch.from_numpy(tokens).expand(len(batch), stages)
        found = build("credit", arm["credit"])(batch).numpy().reshape(worth.shape)
        return {"ranking": _ranked(found[..., 0], worth[..., 0]), "last": _ranked(found[..., -1], worth[..., -1])}

    def _scores(self, worth: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """The share of ``count`` criteria that a judge finds met."""
        asks = norm.ppf((np.arange(count) + 1) / (count + 1))
        errors = self.noise * rng.standard_normal((*worth.shape, count))
        met: np.ndarray = (worth[..., None] + errors > asks).mean(-1)
        return met


def _ranked(found: np.ndarray, true: np.ndarray) -> float:
    """Mean over groups of Spearman's correlation; ties share their ranks."""
    a, b = (rankdata(x, axis=-1) for x in (found, true))
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    scale = np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    return float(np.mean((a * b).sum(-1) / np.where(scale > 0, scale, 1)))
