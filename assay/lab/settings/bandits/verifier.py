"""A verifier that sees one noisy feature of each solution, most of which are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import norm

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting, beside
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict

WRONG, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Setting:
    """Solutions are right with probability ``share``; their feature is normal about ``gap`` or minus that.

    The verifier sees which of ``bins`` equally likely ranges the feature is in, and says right or wrong: a policy of
    two arms for each, undecided at first. It is rewarded for the true verdict.

    Args:
        share: of right solutions.
        gap: half the distance of the means, in standard deviations.
        bins: of the feature.
        items: solutions that are asked about in turn.
        steps, prompts, group, lr, optimizer: of training.
    """

    share: float = 0.1
    gap: float = 0.5
    bins: int = 8
    items: int = 2000
    steps: int = 150
    prompts: int = 16
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained verifier: ``recall`` of right solutions, ``specificity`` of wrong ones,
        their mean ``balanced``, ``accuracy`` on solutions as they come; ``rollouts``."""
        rng = np.random.default_rng([seed, 7])
        label = rng.random(self.items) < self.share
        feature = (2 * label - 1) * self.gap + rng.standard_normal(self.items)
        edges = norm.ppf(np.arange(1, self.bins) / self.bins)
        tree = beside([Tree.bandit(2)] * self.bins)
        policy = TabularPolicy(tree)
        tasks = [
            Task(f"{i}", f"{b}", {"right": bool(y)}, "tabular")
            for i, (b, y) in enumerate(zip(np.searchsorted(edges, feature), label, strict=True))
        ]
        engine = Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, self.verdict, arm, training, seed, engine=engine)
        says = policy.log_policy()[tree.children[0, : self.bins], RIGHT].exp().detach().numpy()
        borders = np.concatenate([[-np.inf], edges, [np.inf]])
        recall, alarm = (float(np.diff(norm.cdf(borders - mean)) @ says) for mean in (self.gap, -self.gap))
        return {
            "recall": recall,
            "specificity": 1 - alarm,
            "balanced": (recall + 1 - alarm) / 2,
            "accuracy": self.share * recall + (1 - self.share) * (1 - alarm),
            "rollouts": engine.sampled,
        }

    def verdict(self, task: Task, response: str) -> Verdict:
        """Whether the verifier says what is true; its path ends in what it says."""
        passed = int(response.rpartition("/")[2]) == (RIGHT if task.reference["right"] else WRONG)
        return Verdict(float(passed), passed)
