"""Episodes that are paid at their end for what a few factors of their steps add up to, among many numbers that do
not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.process.latent_reward import LatentReward
from assay.signals.base import Models


@dataclass(frozen=True, slots=True)
class Setting:
    """A decoder is fitted to returns, on the factors or on all that is seen of a step; nobody acts.

    A step is ``seen`` standard normal numbers. Its reward is a weighted sum of three factors, each the mean of a third
    of these numbers; a return is the sum of an episode's rewards and noise. An arm says what the decoder of reward
    ``latent_reward`` is given (``features``: ``factors`` or ``seen``), and has options of that reward.

    Args:
        episodes, steps: that are seen once, and their length.
        seen: numbers of a step, a multiple of 3.
        noise: standard deviation of the noise in a return.
        updates: of the fit.
        lr: of the fit.
    """

    episodes: int = 100
    steps: int = 20
    seen: int = 60
    noise: float = 0.5
    updates: int = 400
    lr: float = 3e-3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``fit``: minus the root mean squared error of the rewards of steps of new episodes, by their standard
        deviation; ``returns``: the same of their returns without noise."""
        options = dict(arm)
        features = options.pop("features")
        rng = np.random.default_rng([seed, 47])
        weights = rng.standard_normal(3)

        def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
            raw = rng.standard_normal((count, self.steps, self.seen))
            factors = raw.reshape(count, self.steps, 3, -1).mean(-1) * np.sqrt(self.seen / 3)
            return (factors if features == "factors" else raw), factors @ weights

        shown, rewards = drawn(self.episodes)
        returns = rewards.sum(-1) + self.noise * rng.standard_normal(self.episodes)
        part = LatentReward(path=Path(__file__), updates=self.updates, lr=self.lr, k=self.steps, **options)
        part.start(Models(TabularPolicy(Tree.bandit(2, [1.0, 0.0])), rng=np.random.default_rng([seed, 53])))
        part.kept.extend((torch.from_numpy(x).float(), float(r)) for x, r in zip(shown, returns, strict=True))
        part.make(shown.shape[-1])
        for _ in range(self.updates):
            part.fit(part.models.rng)
        assert part.decoder is not None
        shown, rewards = drawn(200)
        with torch.no_grad():
            found = part.decoder(torch.from_numpy(shown).float())[..., 0].numpy()
        error = float(np.sqrt(np.mean((found - rewards) ** 2)) / rewards.std())
        whole = float(np.sqrt(np.mean((found.sum(-1) - rewards.sum(-1)) ** 2)) / rewards.sum(-1).std())
        return {"fit": -error, "returns": -whole}
