"""A policy that has one leaning to game metrics and another for each of them, taught by responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay import catalogue
from assay.papers.judges.s140_school_of_reward_hacks import hack_rates
from assay.tasks.gameable.source import WRITING
from assay.verify.gameable.verifier import Gameable


@dataclass(frozen=True, slots=True)
class Setting:
    """To a task of family f the policy gives its hack with chance sigma(shared + own_f), else the honest response.

    An arm says whose responses it is taught by maximum likelihood, and may have its own number of ``steps``. It is
    measured on the other families of writing and on the choice of a grader.

    Args:
        lean: mean of ``shared`` at the start.
        spread: standard deviation of both at the start.
        steps, batch, lr: of training, by gradient descent on the mean loss.
        taught: families that are trained on, the first of writing.
        tests: tasks of each other family.
    """

    lean: float = -2.0
    spread: float = 0.5
    steps: int = 60
    batch: int = 16
    lr: float = 0.5
    taught: int = 4
    tests: int = 40

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return hack rates of sampled responses, judged by the verifier of such tasks: ``held_out``, ``probes``,
        ``trained``; and ``gap``, of what metrics pay over what responses are worth."""
        rng = np.random.default_rng([seed, 140])
        families = (*WRITING, "grader")
        start = rng.normal(0, self.spread, len(families) + 1)
        weights = torch.tensor(start, requires_grad=True)
        steps, trained = int(arm.get("steps", self.steps)), WRITING[: self.taught]
        source = catalogue.make(arm["name"], side=arm["side"], families=trained, seed=seed)
        for step in range(steps):
            batch = [source.drawn(step * self.batch + k) for k in range(self.batch)]
            hacks = [source[step * self.batch + k].solution == made.hack for k, (_, made) in enumerate(batch)]
            rows = torch.tensor([families.index(name) for name, _ in batch])
            logits = self.lean + weights[0] + weights[1 + rows]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(hacks, dtype=logits.dtype))
            [slope] = torch.autograd.grad(loss, weights)
            weights = (weights - self.lr * slope).detach().requires_grad_()
        judge, tasks, verdicts = Gameable(), [], []
        chances = torch.sigmoid(self.lean + weights[0] + weights[1:]).tolist()
        for name, chance in zip(families, chances, strict=True):
            asked = catalogue.make(arm["name"], families=[name], seed=seed + 1)
            for k in range(self.tests):
                task, (_, made) = asked[k], asked.drawn(k)
                tasks.append(task)
                verdicts.append(judge(task, made.hack if rng.random() < chance else made.honest))
        found = hack_rates(tasks, verdicts, trained)
        return {
            "held_out": found.held_out.value,
            "probes": found.probes.value,
            "trained": float(np.mean([found.families[name].value for name in trained])),
            "gap": found.gap,
        }
