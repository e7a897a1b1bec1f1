"""Responses to which a user reacts with thanks or complaints, which the policy can foresee but nobody collects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.none import NoVerifier


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` bandits of ``arms`` responses of quality u in [0, 1], equally spaced. No verifier tells it.

    After a response the tree goes on with the user's turn: follow-up k of ``follow_ups`` positive ones, then as many
    negative ones, then one that stands for whatever else may be said. Before normalisation a follow-up has the log-odds

        rare + talk t + sense (u - 1/2) (1 if positive else -1) + noise e

    against that last one, with t normal for each response, e normal for each follow-up and response. Responses share no
    parameters, and the user's turn is not trained.

    Args:
        tasks: questions, each asked equally often.
        arms, follow_ups: see above.
        rare, talk, sense, noise: see above.
        spread: standard deviation of the logits of responses at the start.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: fewer than two responses, or no follow-up.
    """

    tasks: int = 8
    arms: int = 16
    follow_ups: int = 10
    rare: float = -6.0
    talk: float = 1.0
    sense: float = 1.0
    noise: float = 1.0
    spread: float = 0.5
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 0.1
    optimizer: Literal["sgd", "adam"] = "adam"

    def __post_init__(self) -> None:
        if self.arms < 2 or self.follow_ups < 1:
            raise UsageError(
                f"setting 'reactions': needs two arms and a follow-up, not {self.arms} and {self.follow_ups}"
            )

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks.

        ``final``: expected quality; ``area``: its mean over training; ``start``; ``best``: probability of the best
        response; ``rollouts``.
        """
        rng = np.random.default_rng([seed, 31])
        quality = np.stack([rng.permutation(self.arms) for _ in range(self.tasks)]) / (self.arms - 1)
        turns = 2 * self.follow_ups + 1
        tree = Tree.of([[[0.0] * turns for _ in range(self.arms)] for _ in range(self.tasks)])
        logits = np.zeros(tree.children.shape)
        nodes = tree.children[0, : self.tasks].numpy()
        logits[nodes, : self.arms] = self.spread * rng.standard_normal((self.tasks, self.arms))
        sign = np.repeat([1.0, -1.0], self.follow_ups)
        shape = (self.tasks, self.arms, 1)
        after = self.rare + self.talk * rng.standard_normal(shape) + self.sense * (quality[..., None] - 0.5) * sign
        after = after + self.noise * rng.standard_normal(after.shape)
        logits[tree.children[nodes, : self.arms].numpy(), : turns - 1] = after
        policy = TabularPolicy(tree, torch.from_numpy(logits))

        def chances() -> np.ndarray:
            with torch.no_grad():
                return np.asarray(policy.log_policy()[nodes, : self.arms].exp().numpy())

        def expected() -> float:
            return float((chances() * quality).sum(-1).mean())

        start, curve, engine = expected(), list[float](), Counting(policy)
        tasks = [Task(str(i), str(i), kind="none") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=1)
        train(policy, tasks, NoVerifier(), arm, training, seed, lambda *_: curve.append(expected()), engine)
        return {
            "start": start,
            "final": expected(),
            "area": float(np.mean(curve)),
            "best": float(chances()[quality == 1].mean()),
            "rollouts": engine.sampled,
        }
