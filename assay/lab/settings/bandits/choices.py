"""A bandit whose verdicts have parts: what a composed reward makes a policy choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict

Outcome = tuple[float, bool, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Setting:
    """Each choice has outcomes, one of which is drawn every time: a chance, whether it is right, and the parts' scores.

    Args:
        choices: per choice its outcomes, whose chances add up to 1.
        logits: of the choices at the start; all equal where left out.
        spread: standard deviation of what is added to the logits at the start.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: fewer than two choices, chances that do not add up to 1, or logits that do not fit.
    """

    choices: Sequence[Sequence[Outcome]] = (
        ((0.5, True, {}), (0.5, False, {})),
        ((0.2, True, {}), (0.8, False, {})),
    )
    logits: Sequence[float] = ()
    spread: float = 0.3
    steps: int = 200
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or (self.logits and len(self.logits) != len(self.choices)):
            raise UsageError("setting 'choices': give two choices or more, and a logit for each or none")
        if any(abs(sum(p for p, _, _ in outcomes) - 1) > 1e-9 for outcomes in self.choices):
            raise UsageError("setting 'choices': the chances of a choice's outcomes must add up to 1")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy: ``right``, its chance to be right; ``area``, the mean of that
        over training; ``choice K``, the chance of each choice; ``part NAME``, the mean of each part; ``rollouts``."""
        start = np.array([list(self.logits) or [0.0] * len(self.choices)])
        logits = torch.from_numpy(start + jitter(self.spread, seed, *start.shape))
        policy = TabularPolicy(Tree.bandit(len(self.choices)), logits)
        rng = np.random.default_rng([seed, 19])
        right = np.array([sum(p * ok for p, ok, _ in outcomes) for outcomes in self.choices])
        curve: list[float] = []

        def judge(task: Task, response: str) -> Verdict:
            outcomes = self.choices[int(response)]
            _, passed, parts = outcomes[int(rng.choice(len(outcomes), p=[p for p, _, _ in outcomes]))]
            return Verdict(float(passed), bool(passed), dict(parts))

        def chances() -> np.ndarray:
            found: np.ndarray = policy.leaf_logprobs().detach().exp().numpy()
            return found

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        task = Task("choices", "which?", kind="choices")
        train(policy, [task], judge, arm, training, seed, lambda *_: curve.append(float(chances() @ right)))
        p = chances()
        names = sorted({name for outcomes in self.choices for _, _, parts in outcomes for name in parts})
        means = {
            n: np.array([sum(q * parts.get(n, 0.0) for q, _, parts in outcomes) for outcomes in self.choices])
            for n in names
        }
        return {
            "right": float(p @ right),
            "area": float(np.mean(curve)),
            **{f"choice {k}": float(x) for k, x in enumerate(p)},
            **{f"part {name}": float(p @ mean) for name, mean in means.items()},
            "rollouts": self.steps * self.prompts * self.group,
        }
