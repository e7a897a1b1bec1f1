"""Recorded answers of which most are poor, a policy that imitates them, and nothing to sample but the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting, beside
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` bandits with ``rewards`` in [0, 1]; ``records`` answers to each, drawn with ``frequencies``.

    The arms of each task are in another order. The policy starts where supervised learning on the records ends: at
    their frequencies, half a record added to each arm.

    Args:
        tasks: questions, each asked equally often.
        rewards, frequencies: of the arms.
        records: answers on record for each question.
        steps, prompts, group, lr, optimizer: of training; ``group`` records are drawn for a prompt.

    Raises:
        UsageError: not one frequency for each reward.
    """

    tasks: int = 8
    rewards: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
    frequencies: Sequence[float] = (0.35, 0.3, 0.2, 0.1, 0.05)
    records: int = 100
    steps: int = 200
    prompts: int = 8
    group: int = 16
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if len(self.rewards) != len(self.frequencies):
            raise UsageError("setting 'offline': rewards and frequencies are one number for each arm")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over tasks.

        ``final``: the expected reward; ``start``; ``best``: the probability of the best arm; ``sampled``: responses
        that were generated.
        """
        rng = np.random.default_rng([seed, 17])
        arms = len(self.rewards)
        orders = np.stack([rng.permutation(arms) for _ in range(self.tasks)])
        rewards, frequencies = np.asarray(self.rewards)[orders], np.asarray(self.frequencies)[orders]
        counts = np.stack([rng.multinomial(self.records, f / f.sum()) for f in frequencies])
        tree = beside([Tree.bandit(arms, row.tolist()) for row in rewards])
        logits = torch.zeros(tree.children.shape, dtype=torch.float64)
        nodes = tree.children[0, : self.tasks]
        logits[nodes, :arms] = torch.from_numpy(np.log(counts + 0.5))
        policy = TabularPolicy(tree, logits)
        tasks = [
            Task(
                str(i),
                str(i),
                kind="tabular",
                meta={"responses": [str(a) for a, n in enumerate(row.tolist()) for _ in range(n)]},
            )
            for i, row in enumerate(counts)
        ]

        def chances() -> np.ndarray:
            with torch.no_grad():
                return np.asarray(policy.log_policy()[nodes, :arms].exp().numpy())

        start, engine = float((chances() * rewards).sum(-1).mean()), Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(tree), arm, training, seed, engine=engine)
        p = chances()
        return {
            "start": start,
            "final": float((p * rewards).sum(-1).mean()),
            "best": float(p[np.arange(self.tasks), rewards.argmax(-1)].mean()),
            "sampled": engine.sampled,
        }
