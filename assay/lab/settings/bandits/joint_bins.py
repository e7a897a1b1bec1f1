"""One decision of two dimensions, in which what is best of one depends on the other: learned from uniform choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.environments.control.recorded import Record
from assay.learning.update import update
from assay.method import make_method
from assay.policies.control.binned import BinnedPolicy
from assay.policies.control.config import ControlConfig
from assay.signals.base import Models

WORTH = ((-1.0, 1.0), (1.0, 0.2))
"""Of bins (first, second): the best two are apart, and on average the second bin of either is better."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy of one level of two bins learns what four actions are worth, each as often on record.

    Args:
        steps: updates, by Adam.
        batch: transitions of each.
        hidden: widths of the layers.
        alpha: temperature of the values.
        noise: standard deviation of what an action is paid.
        lr: learning rate.
    """

    steps: int = 400
    batch: int = 32
    hidden: tuple[int, ...] = (16,)
    alpha: float = 0.05
    noise: float = 0.1
    lr: float = 1e-2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``value``, what the likeliest action is worth; ``error``, root of the mean squared error of the values
        of all four, where they are the twins' mean; ``rollouts``: steps on record, the same for all.
        """
        rng = np.random.default_rng([seed, 53])
        torch.manual_seed(seed)
        options = {"decisions": "bins", "levels": 1, "bins": 2, "alpha": self.alpha, "hidden": list(self.hidden)}
        config = ControlConfig.model_validate({**options, "conditioned": arm["conditioned"]})
        policy = BinnedPolicy(config, (1, 2), torch.device("cpu"))
        method = make_method(**{**arm["method"], "options": {"updates": self.steps, "batch": self.batch}})
        select: Any = method.select
        select.start(Models(policy))
        select.played.add(self.record(rng))
        optimizer = torch.optim.Adam(policy.module.parameters(), lr=self.lr)
        for part in select.replay(Batch.from_groups([]), rng):
            part.totals = part.count()
            update(policy, method.objective, part, optimizer, live=method.live)
        tokens, *_ = policy.act(np.zeros((1, 1), np.float32), [rng], 0.0)
        every = torch.tensor([[a, b] for a in (0, 1) for b in (0, 1)])
        with torch.no_grad():
            _, live = policy.read(torch.zeros(4, 1), torch.zeros(4, 2), every, ["twin_q"], 1.0)
        error = live["twin_q"][:, 0].mean(-1).numpy() - np.array(WORTH).reshape(-1)
        first, second = tokens[0].tolist()
        return {
            "value": WORTH[first][second],
            "error": float(np.sqrt((error**2).mean())),
            "rollouts": float(len(select.played)),
        }

    def record(self, rng: np.random.Generator) -> Record:
        """Every action a hundred times, each an episode of its own."""
        chosen = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 100)
        states = np.zeros((len(chosen), 1), np.float32)
        paid = np.array([WORTH[a][b] for a, b in chosen]) + self.noise * rng.standard_normal(len(chosen))
        over = np.ones(len(chosen), dtype=bool)
        actions = (chosen - 0.5).astype(np.float32)
        return Record(states, actions, paid.astype(np.float32), states, over, ~over, ~over)
