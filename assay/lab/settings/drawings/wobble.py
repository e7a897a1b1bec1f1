"""A flow that has been shown falling discs that wobble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.flow.engine import FlowEngine
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.drawings.ring import Counting
from assay.ops.denoising import noised
from assay.ops.motion import brightness, kinematic_loss, masses, positions
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import video
from assay.tasks.drawings.motions import Motions, draw
from assay.verify.drawings.motion import Motion

MEASURED = 128
"""ODE samples that a policy is measured by."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An MLP flow draws columns of pixels in which a disc falls; what it was shown wobbles on its way, by phases of
    its own. It does not read what it is asked.

    Args:
        frames, height: of a video, a pixel wide.
        wobble: standard deviation of its size, in heights.
        hidden: width of the network.
        shown: supervised steps of Adam at a rate of 2e-3, on 128 videos each.
        steps, prompts, group, lr, max_tokens: of training; the optimiser is Adam.
    """

    frames: int = 8
    height: int = 16
    wobble: float = 0.05
    hidden: int = 128
    shown: int = 1500
    steps: int = 60
    prompts: int = 8
    group: int = 8
    lr: float = 3e-4
    max_tokens: int = 8

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return means over ODE samples: ``light``, of the frames as a share of a real one's; ``jerk``, root of the
        kinematic loss of the object's centre; ``range``, what it moves; all three at the ``start`` too; ``sampled``.
        """
        source = Motions(seed, ("free_fall",), (), self.frames, self.height, 1)
        tasks = [source[i] for i in range(64)]
        policy = self.policy(seed)
        policy.module.load_state_dict(_weights(self, seed))
        engine = Counting(policy)
        start = self.measure(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, "adam", max_tokens=self.max_tokens)
        train(policy, tasks, Motion(), arm, training, seed, engine=engine)
        found = {**{f"start/{k}": v for k, v in start.items()}, **self.measure(policy)}
        return {**found, "sampled": float(engine.sampled)}

    def policy(self, seed: int) -> FlowPolicy:
        """Return the flow as it is made."""
        config = FlowConfig(shape=(self.frames, self.height, 1, 3), hidden=self.hidden)
        return FlowPolicy(config, network(config, seed))

    def measure(self, policy: FlowPolicy) -> dict[str, float]:
        """Measure a policy by its ODE samples."""
        [drawn] = FlowEngine(policy).generate([Request("", MEASURED, Sampling(self.max_tokens, 0.0), 11)])
        light = brightness(torch.from_numpy(np.stack([v for e in drawn if (v := video(e.text)) is not None])))
        real = float(masses(brightness(torch.from_numpy(self.videos(np.random.default_rng(1), 32)))).mean())
        places = positions(light)
        return {
            "light": float(masses(light).mean()) / real,
            "jerk": float(kinematic_loss(places).mean().sqrt()),
            "range": float((places[..., 1].amax(1) - places[..., 1].amin(1)).mean()),
        }

    def videos(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return frames ``(count, F, H, 1, 3)`` between -1 and 1 of discs that fall and wobble."""
        time = np.arange(self.frames)
        size, phase = self.wobble * rng.standard_normal((count, 1)), 2 * np.pi * rng.random((count, 1))
        y = (
            rng.uniform(0.7, 0.9, (count, 1))
            - 0.35 * (time / (self.frames - 1)) ** 2
            + size * np.sin(2.5 * time + phase)
        )
        places = np.stack([np.full_like(y, 0.5 / self.height), y], -1)
        drawn = np.stack([draw(own, self.height, 1, 0.08) for own in places])
        return drawn.astype(np.float32) / 255 * 2 - 1


@cache
def _weights(setting: Setting, seed: int) -> dict[str, torch.Tensor]:
    """Weights that know the wobbling discs, the same for every arm of a seed."""
    policy = setting.policy(seed)
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=2e-3)
    pool = torch.from_numpy(setting.videos(np.random.default_rng([seed, 2]), 4096)).flatten(1)
    rng = torch.Generator().manual_seed(seed)
    for _ in range(setting.shown):
        x0 = pool[torch.randint(len(pool), (128,), generator=rng)]
        x1, level = torch.randn(x0.shape, generator=rng), torch.rand(len(x0), 1, generator=rng)
        error = ((policy.velocity(noised(x0, x1, level), level[:, 0], None) - (x1 - x0)) ** 2).mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in policy.module.state_dict().items()}
