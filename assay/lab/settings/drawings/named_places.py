"""A thought that names a place of the ring, and a flow that draws the place that is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.flow.thinking import ThinkingEngine
from assay.lab.settings._tabular import Training, train
from assay.learning.update import update
from assay.learning.warmup import demonstrations
from assay.objectives.sft import SFT
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.samples import split
from assay.policies.flow.thinking import ThinkingFlow, response
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig
from assay.policies.policy import load_policy
from assay.registry import build
from assay.tasks.drawings.ring import Ring
from assay.types import Task

PLACES = "abcd"
CONFIG = ModelConfig(
    source="flow",
    nano=NanoConfig(hidden=32, layers=1, heads=2, context=16, alphabet=PLACES + PLACES.upper()),
    flow=FlowConfig(hidden=64, layers=3, prompt=16, language="nano", steps=6, dropout=0.0),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """The prompt names one of four places in a capital; a thought names any; the flow has learnt to draw that one.

    Args:
        steps, prompts, group, lr, mini_batches: of training; the optimiser is Adam.
    """

    steps: int = 30
    prompts: int = 4
    group: int = 16
    lr: float = 1e-3
    mini_batches: int = 2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return measures of samples at temperature 1 for thoughts and noise.

        ``final``: the mean score of :class:`~assay.verify.drawings.near.Near`; ``start``; ``named``: share of thoughts
        that name the place that is wanted; ``sampled``: responses drawn.
        """
        policy = load_policy(CONFIG, seed)
        policy.module.load_state_dict(_weights(seed))
        tasks, engine, verifier = asked(seed), Counting(policy), build("verify", "near")
        start = measure(policy, tasks, verifier)["final"]
        training = Training(
            self.steps, self.prompts, self.group, self.lr, "adam", mini_batches=self.mini_batches, max_tokens=2
        )
        train(policy, tasks, verifier, arm, training, seed, engine=engine)
        return {"start": start, **measure(policy, tasks, verifier), "sampled": float(engine.sampled)}


def asked(seed: int) -> list[Task]:
    """Return a task for each place."""
    ring = Ring(seed, places=len(PLACES))
    return [Task(f"place {i}", name.upper(), ring.place(i), "near") for i, name in enumerate(PLACES)]


def measure(policy: ThinkingFlow, tasks: list[Task], verifier: Any) -> dict[str, float]:
    """Measure a policy."""
    answers = ThinkingEngine(policy).generate([Request(t.prompt, 64, Sampling(2), 5 + i) for i, t in enumerate(tasks)])
    pairs = [(task, e.text) for task, own in zip(tasks, answers, strict=True) for e in own]
    return {
        "final": float(np.mean([verifier(task, text).score for task, text in pairs])),
        "named": float(np.mean([split(text)[0] == str(task.prompt).lower() for task, text in pairs])),
    }


class Counting(ThinkingEngine):
    """Counts what it draws."""

    sampled = 0

    def generate(self, requests: Any) -> Any:
        self.sampled += sum(request.n for request in requests)
        return super().generate(requests)


@cache
def _weights(seed: int) -> dict[str, torch.Tensor]:
    """A policy whose thoughts name any place and whose drawings are at the place that is named."""
    policy, ring = load_policy(CONFIG, seed), Ring(seed, places=len(PLACES))
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=3e-3)
    rng = np.random.default_rng([seed, 41])
    for _ in range(400):
        tasks = []
        for i in range(64):
            wanted, named = rng.integers(len(PLACES), size=2)
            x, y = np.array(ring.place(int(named))) + 0.15 * rng.standard_normal(2)
            text = response(PLACES[named], f"{x:.9g} {y:.9g}")
            tasks.append(Task(str(i), PLACES[wanted].upper(), solution=text))
        update(policy, SFT(), demonstrations(tasks, policy), optimizer, token_budget=2**20)
    return {name: tensor.clone() for name, tensor in policy.module.state_dict().items()}
