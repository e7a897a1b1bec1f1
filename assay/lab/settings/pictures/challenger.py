"""A challenger that chooses among kinds of programs, each understood by the solver to an extent of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.rewards.outcome.challenge import ChallengeReward
from assay.signals.challenged import Challenged
from assay.tasks.pictures.challenges import Challenges, worth
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A bandit over kinds of programs; the solver, who does not learn, answers what they do rightly with a probability
    that is uniform over kinds. Invalid ones, a share ``broken`` of the kinds, give no questions. An arm is what
    difficulty is paid; form and validity are paid as the paper's reward pays them.

    Args:
        kinds: of programs.
        broken: see above.
        samples: answers of the solver to each program.
        spread: standard deviation of logits at the start.
        steps, group, lr: of training.
    """

    kinds: int = 20
    broken: float = 0.3
    samples: int = 6
    spread: float = 0.5
    steps: int = 200
    group: int = 8
    lr: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``near``, the mean over what the policy chooses of 1 - 2 |p - 1/2|, 0 for what is broken, p the
        solver's probability; ``valid``, the share that is not broken; ``start``, of ``near``; and ``rollouts``."""
        rng = np.random.default_rng([seed, 152])
        p = rng.permutation((np.arange(self.kinds) + 0.5) / self.kinds)
        broken = rng.permutation(self.kinds) < round(self.broken * self.kinds)
        near = np.where(broken, 0.0, [worth(x) for x in p])
        policy = TabularPolicy(Tree.bandit(self.kinds), torch.from_numpy(jitter(self.spread, seed, 1, self.kinds)))
        plain = ChallengeReward(Challenged(Challenges()))
        weights: dict[str, float] = {"form": plain.form, "valid": plain.valid, "hard": plain.hard, **arm}

        def verdict(task: Task, response: str) -> Verdict:
            [kind] = path_of(response) or (0,)
            if broken[kind]:
                return Verdict(weights["form"], False)
            accuracy = rng.binomial(self.samples, p[kind]) / self.samples
            return Verdict(weights["form"] + weights["valid"] + weights["hard"] * worth(accuracy), True)

        def chosen() -> np.ndarray:
            found: np.ndarray = policy.leaf_logprobs().detach().exp().numpy()
            return found

        start, engine = float(chosen() @ near), Counting(policy)
        training = Training(self.steps, 1, self.group, self.lr)
        train(policy, [Task("program", "", kind="program")], verdict, {"name": "grpo"}, training, seed, engine=engine)
        return {
            "start": start,
            "near": float(chosen() @ near),
            "valid": float(chosen() @ ~broken),
            "rollouts": float(engine.sampled),
        }
