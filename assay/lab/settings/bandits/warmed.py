"""Three domains that share a habit: one to imitate traces of, one with few problems for RL, one never asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.bandits.problems import Coupled
from assay.lab.settings.bandits.problems import Setting as Problems
from assay.lab.settings.tree import Counting
from assay.policies.tabular import text_of
from assay.types import Task

IMITATION = {"name": "grpo", "objective": "sft", "rollout": "recorded"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Problem i is answered rightly with probability sigmoid(own w_i + shared w), w being one habit for all domains.

    An arm is a table with ``warm``, supervised steps on the traces of the first domain, and ``method``, of the RL that
    follows on ``asked`` problems of the second. Its other problems and the third domain show what the habit brings;
    that there is one which all domains share is given.

    Args:
        problems: of each domain.
        asked: of the second, those that RL asks.
        own, shared: how much a problem's own weight and the habit do.
        start, spread: mean and standard deviation of w_i at the start; w starts at 0.
        wrong: share of the traces that end in a wrong answer.
        lr_warm: learning rate of the supervised stage.
        steps, group, lr: of RL.
    """

    problems: int = 8
    asked: int = 4
    own: float = 1.0
    shared: float = 0.5
    start: float = -2.0
    spread: float = 0.3
    wrong: float = 0.2
    lr_warm: float = 1.0
    steps: int = 15
    group: int = 10
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact mean probabilities of a right answer, and ``rollouts``.

        They are of ``target`` problems that RL did not ask, of ``other`` and of ``traced`` ones; with ``/warm`` behind
        their names before RL, with ``/base`` before both stages.
        """
        n = self.problems
        kinds = ((3 * n, self.own, self.shared, self.start),)
        policy: Coupled = Problems(kinds=kinds, spread=self.spread).policy(seed)
        slips = np.random.default_rng([seed, 31]).random(n) < self.wrong
        traces = [Task(str(i), str(i), kind="tabular", solution=text_of((int(slip),))) for i, slip in enumerate(slips)]
        verifier, engine = TabularVerifier(policy.tree), Counting(policy)
        base = policy.chances()
        if arm["warm"]:
            train(policy, traces, verifier, IMITATION, Training(arm["warm"], n, 2, self.lr_warm), seed, engine=engine)
        warm = policy.chances()
        target = [Task(str(n + i), str(n + i), kind="tabular") for i in range(self.asked)]
        training = Training(self.steps, self.asked, self.group, self.lr)
        train(policy, target, verifier, arm["method"], training, seed, engine=engine)
        p = policy.chances()
        unasked, other = slice(n + self.asked, 2 * n), slice(2 * n, 3 * n)
        return {
            "target": float(p[unasked].mean()),
            "other": float(p[other].mean()),
            "traced": float(p[:n].mean()),
            "target/base": float(base[unasked].mean()),
            "other/base": float(base[other].mean()),
            "target/warm": float(warm[unasked].mean()),
            "other/warm": float(warm[other].mean()),
            "rollouts": engine.sampled,
        }
