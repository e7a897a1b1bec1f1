"""Responses with states, a reward model fitted where most of them are, and a worth that turns where it has not been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.rewards.judges.dimensions import Clusters


@dataclass(frozen=True, slots=True)
class Setting:
    """Responses have normal states h, ``far`` of them ``stretch`` times as long. Worth is u h, less ``bend`` times the
    square of what |h| has beyond ``reach``. The reward model is fitted by least squares to noisy worths of near
    responses that people saw, of two dimensions, whose states are clustered.

    A softmax policy over the responses climbs the model's scores by policy gradients of samples. An arm's ``drop`` says
    which of them are left out: those ``far`` from the clusters, as many by lot (``random``), or ``none``.

    Args:
        responses, width, far, stretch, reach, bend: see above.
        seen, noise: responses that people saw, and the deviation of what they said.
        steps, samples, lr: of the policy.
        quantile: of the distances of seen responses, beyond which one is far.
    """

    responses: int = 200
    width: int = 6
    far: float = 0.3
    stretch: float = 3.0
    reach: float = 3.5
    bend: float = 0.2
    seen: int = 300
    noise: float = 0.5
    steps: int = 100
    samples: int = 64
    lr: float = 1.0
    quantile: float = 0.9

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``worth``, the trained policy's expected worth, ``peak``, the most it had on the way, ``score``, what
        the model says of it, and ``dropped``, the share of samples that were left out."""
        rng = np.random.default_rng([seed, 67])
        u = rng.standard_normal(self.width) / np.sqrt(self.width)
        h = rng.standard_normal((self.responses, self.width))
        h[: int(self.far * self.responses)] *= self.stretch
        seen = rng.standard_normal((self.seen, self.width))
        told = self.worth(seen, u) + self.noise * rng.standard_normal(self.seen)
        fitted = np.linalg.lstsq(np.c_[seen, np.ones(self.seen)], told, rcond=None)[0]
        score, worth = np.c_[h, np.ones(self.responses)] @ fitted, self.worth(h, u)
        halves = {name: torch.from_numpy(x) for name, x in zip(("one", "other"), np.array_split(seen, 2), strict=True)}
        clusters = Clusters.fit(halves, 3, self.quantile, seed)
        away = (clusters.nearest(torch.from_numpy(h)) > clusters.threshold).numpy()
        draws, lots = np.random.default_rng([seed, 71]), np.random.default_rng([seed, 73])
        logits, dropped, course = np.zeros(self.responses), 0.0, []
        for _ in range(self.steps):
            p = np.exp(logits - logits.max())
            p /= p.sum()
            course.append(float(p @ worth))
            drawn = draws.choice(self.responses, self.samples, p=p)
            gone = away[drawn] & (arm["drop"] != "none")
            if arm["drop"] == "random":
                gone = lots.permutation(gone)
            kept = drawn[~gone]
            dropped += float(gone.mean()) / self.steps
            if not len(kept):
                continue
            advantage = score[kept] - score[kept].mean()
            step = np.bincount(kept, advantage, self.responses) - advantage.sum() * p
            logits = logits + self.lr * step / len(kept)
        p = np.exp(logits - logits.max())
        p /= p.sum()
        return {"worth": float(p @ worth), "peak": max(course), "score": float(p @ score), "dropped": dropped}

    def worth(self, h: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray(h @ u - self.bend * np.maximum(np.linalg.norm(h, axis=1) - self.reach, 0) ** 2)
