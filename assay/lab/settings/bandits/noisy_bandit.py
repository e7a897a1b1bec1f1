"""A bandit whose verifier misses right answers of some arms: what it prefers is not what is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Arm i is right with probability ``success[i]``, drawn anew each time; how often the verifier errs depends on it.

    Its verdict names the arm as the check that decided, ``arm 0``, ``arm 1`` and so on, by which a method may know its
    rates.

    Args:
        success: of each arm.
        false_negative, false_positive: of the verifier on each arm.
        spread: standard deviation of what is added to the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    success: tuple[float, ...] = (0.6, 0.4)
    false_negative: tuple[float, ...] = (0.5, 0.0)
    false_positive: tuple[float, ...] = (0.0, 0.0)
    spread: float = 0.3
    steps: int = 200
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if len({len(self.success), len(self.false_negative), len(self.false_positive)}) > 1:
            raise UsageError("setting 'noisy_bandit': give one success, false_negative and false_positive for each arm")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``final``: the trained policy's chance to be truly right; ``best``: to take the best arm; ``area``:
        mean over training of the chance to be right; ``start``; ``rollouts``: episodes sampled."""
        arms = len(self.success)
        policy = TabularPolicy(Tree.bandit(arms), torch.from_numpy(jitter(self.spread, seed, 1, arms)))
        success, curve = np.array(self.success), list[float]()

        def right() -> float:
            return float(policy.leaf_logprobs().detach().exp().numpy() @ success)

        start = right()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        verifier = Erring(self, np.random.default_rng([seed, 13]))
        task = Task("bandit", "which arm?", kind="bandit")
        train(policy, [task], verifier, arm, training, seed, lambda *_: curve.append(right()))
        chosen = policy.leaf_logprobs().detach().exp().numpy()
        return {
            "start": start,
            "final": right(),
            "best": float(chosen[success.argmax()]),
            "area": float(np.mean(curve)),
            "rollouts": self.steps * self.prompts * self.group,
        }


class Erring:
    """Draws whether an arm was right, and what the verifier says of it.

    Args:
        setting: its rates.
        rng: of both draws.
    """

    def __init__(self, setting: Setting, rng: np.random.Generator):
        self.setting, self.rng = setting, rng

    def __call__(self, task: Task, response: str) -> Verdict:
        i, here = int(response), self.setting
        right = self.rng.random() < here.success[i]
        accepted = self.rng.random() < (1 - here.false_negative[i] if right else here.false_positive[i])
        return Verdict(float(accepted), accepted, {f"arm {i}": float(accepted)})
