"""A flow that draws videos of many solved puzzles alike, and is to draw that of one."""

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
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import read
from assay.tasks.drawings.puzzles.videos import PuzzleVideos
from assay.types import Task
from assay.verify.drawings.puzzles.cells import Puzzle
from assay.verify.drawings.puzzles.video import PuzzleVideo

MEASURED = 128
"""ODE samples that a policy is measured by."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An MLP flow draws small videos, a pixel a cell, whose colour is the nearest. It does not read what it is asked:
    by flow matching it knows the solutions of many puzzles, and is then asked for that of one of the longest.

    Args:
        puzzle, side, frames: of :class:`~assay.tasks.drawings.puzzles.videos.PuzzleVideos`.
        puzzles: whose solutions are shown.
        hidden: width of the network.
        shown: supervised steps of Adam at a rate of 2e-3, on 128 solutions each.
        steps, prompts, group, lr, mini_batches, max_tokens: of training; the optimiser is Adam.
    """

    puzzle: Puzzle = "maze"
    side: int = 3
    frames: int = 3
    puzzles: int = 24
    hidden: int = 96
    shown: int = 1000
    steps: int = 24
    prompts: int = 8
    group: int = 12
    lr: float = 1e-3
    mini_batches: int = 2
    max_tokens: int = 8

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return shares of ODE samples that solve the puzzle, ``start`` and ``final``, their mean ``f1`` and
        ``validity`` at the end, and ``sampled``, the videos drawn in training.
        """
        tasks = self.tasks(seed)
        asked = max(tasks, key=lambda task: len({str(state) for state in task.reference["solution"]}))
        policy = self.policy(seed)
        policy.module.load_state_dict(_weights(self, seed))
        engine, verifier = Counting(policy), PuzzleVideo(127.0)

        def measure() -> dict[str, float]:
            request = Request(asked.prompt, MEASURED, Sampling(self.max_tokens, 0.0), 11)
            found = [verifier(asked, e.text) for e in FlowEngine(policy).generate([request])[0]]
            parts = {name: float(np.mean([v.parts[name] for v in found])) for name in ("f1", "validity")}
            return {"final": float(np.mean([v.score for v in found])), **parts}

        start = measure()["final"]
        sizes = {"mini_batches": self.mini_batches, "max_tokens": self.max_tokens}
        training = Training(self.steps, self.prompts, self.group, self.lr, "adam", **sizes)
        train(policy, [asked] * self.prompts, verifier, arm, training, seed, engine=engine)
        return {"start": start, **measure(), "sampled": float(engine.sampled)}

    def tasks(self, seed: int) -> list[Task]:
        """Return the puzzles."""
        source = PuzzleVideos(seed, (self.puzzle,), self.side, self.frames, 1)
        return [source[i] for i in range(self.puzzles)]

    def policy(self, seed: int) -> FlowPolicy:
        """Return the flow as it is made."""
        config = FlowConfig(shape=(self.frames, self.side, self.side, 3), hidden=self.hidden)
        return FlowPolicy(config, network(config, seed))


@cache
def _weights(setting: Setting, seed: int) -> dict[str, torch.Tensor]:
    """Weights that know the solutions, the same for every arm of a seed."""
    policy = setting.policy(seed)
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=2e-3)
    videos = [read(task.solution or "", policy.config.shape).reshape(-1) for task in setting.tasks(seed)]
    shown, rng = torch.from_numpy(np.stack(videos)), torch.Generator().manual_seed(seed)
    for _ in range(setting.shown):
        x0 = shown[torch.randint(len(shown), (128,), generator=rng)]
        x1, level = torch.randn(x0.shape, generator=rng), torch.rand(len(x0), 1, generator=rng)
        error = ((policy.velocity(noised(x0, x1, level), level[:, 0], None) - (x1 - x0)) ** 2).mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in policy.module.state_dict().items()}
