"""A flow over points of a ring, and a place of it that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.flow.engine import FlowEngine
from assay.lab.settings._tabular import Training, train
from assay.ops.denoising import noised
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import point
from assay.registry import build
from assay.tasks.drawings.ring import Ring
from assay.types import Task

MEASURED = 512
"""Samples that a policy is measured by."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An MLP flow that draws the ring's eight places alike, and a verifier that rewards one of them, or is hacked.

    Args:
        reward: ``near``: exp(-d^2 / 2) of the distance d to (2, 0); ``right``: how far to the right a point is,
            sigmoid(x - 2), which has no end: the further, the better.
        records: groups of ``group`` drawings of the flow as it begins, on record with their rewards; 0 for none.
        shown: drawn points of the wanted place that each task shows as references; 0 for none.
        steps, prompts, group, lr, mini_batches, max_tokens: of training; the optimiser is Adam.
        noise: of the flow's steps.
    """

    reward: Literal["near", "right"] = "near"
    records: int = 0
    shown: int = 0
    steps: int = 60
    prompts: int = 16
    group: int = 24
    lr: float = 3e-4
    mini_batches: int = 2
    max_tokens: int = 10
    noise: float = 0.7

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return measures of ODE samples, MEASURED of them.

        ``final``: the mean reward; ``start``; ``distance``: mean distance from the wanted place, and ``near``: less
        than zero, that distance; ``off_ring``: mean distance from the ring; ``spread``: mean standard
        deviation of a coordinate; ``sampled``: samples drawn.
        """
        config = FlowConfig(noise=self.noise)
        policy = FlowPolicy(config, network(config, seed))
        policy.module.load_state_dict(_weights(seed))
        ring, verifier = Ring(seed), build("verify", self.reward)
        tasks = [ring[i] for i in range(self.records or 64)]
        engine = Counting(policy)
        if self.records:
            how = Sampling(self.max_tokens, 0.0)
            drawn = engine.generate([Request(t.prompt, self.group, how, 7 + i) for i, t in enumerate(tasks)])
            engine.sampled = 0
            tasks = [
                Task(
                    t.id,
                    t.prompt,
                    t.reference,
                    t.kind,
                    meta={"responses": [{"text": e.text, "reward": verifier(t, e.text).score} for e in own]},
                )
                for t, own in zip(tasks, drawn, strict=True)
            ]
        if self.shown:
            rng = np.random.default_rng([seed, 3])
            places = np.array(ring.place(0)) + 0.15 * rng.standard_normal((len(tasks), self.shown, 2))
            texts = [[" ".join(f"{x:.9g}" for x in place) for place in own] for own in places]
            tasks = [
                Task(t.id, t.prompt, t.reference, t.kind, meta={"references": own})
                for t, own in zip(tasks, texts, strict=True)
            ]
        start = self.measure(policy, verifier, tasks[0])["final"]
        training = Training(
            self.steps,
            self.prompts,
            self.group,
            self.lr,
            "adam",
            mini_batches=self.mini_batches,
            max_tokens=self.max_tokens,
        )
        train(policy, tasks, verifier, arm, training, seed, engine=engine)
        return {"start": start, **self.measure(policy, verifier, tasks[0]), "sampled": float(engine.sampled)}

    def measure(self, policy: FlowPolicy, verifier: Any, task: Task) -> dict[str, float]:
        """Measure a policy by its ODE samples."""
        [drawn] = FlowEngine(policy).generate([Request(task.prompt, MEASURED, Sampling(self.max_tokens, 0.0), 11)])
        points = np.array([point(e.text) for e in drawn])
        scores = [verifier(task, e.text).score for e in drawn]
        away = np.linalg.norm(points - np.array([2.0, 0.0]), axis=-1).mean()
        return {
            "final": float(np.mean(scores)),
            "distance": float(away),
            "near": -float(away),
            "off_ring": float(np.abs(np.linalg.norm(points, axis=-1) - 2).mean()),
            "spread": float(points.std(0).mean()),
        }


class Counting(FlowEngine):
    """Counts what it draws."""

    sampled = 0

    def generate(self, requests: Any) -> Any:
        self.sampled += sum(request.n for request in requests)
        return super().generate(requests)


@cache
def _weights(seed: int) -> dict[str, torch.Tensor]:
    """A flow that has learnt the ring by flow matching, the same for every arm of a seed."""
    config = FlowConfig()
    policy = FlowPolicy(config, network(config, seed))
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=2e-3)
    rng, ring = torch.Generator().manual_seed(seed), Ring(seed)
    places = torch.tensor([ring.place(i) for i in range(ring.places)])
    for _ in range(2000):
        x0 = places[torch.randint(len(places), (256,), generator=rng)] + 0.15 * torch.randn(256, 2, generator=rng)
        x1, level = torch.randn(256, 2, generator=rng), torch.rand(256, 1, generator=rng)
        error = ((policy.velocity(noised(x0, x1, level), level[:, 0], None) - (x1 - x0)) ** 2).mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in policy.module.state_dict().items()}
