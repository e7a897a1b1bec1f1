"""Proofs of different worth, and what their writer says that they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task
from assay.verify.none import NoVerifier
from assay.verify.proofs.analysis import CLOSING, OPENING, SCORES

FORM = f"{OPENING}\nas it is\n{CLOSING}\n\\boxed{{{{{{0:g}}}}}}"
REPLIES = [
    ("^Analyse the analysis", FORM.format(1.0)),
    *((rf"worth {score:g}\n", FORM.format(score)) for score in SCORES),
]
"""Of a judge who sees what a proof is worth, and finds every analysis justified."""


class Writer(Counting):
    """Writes the proof and the analysis that a tabular policy chooses."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, text=_written(e.text)) for e in some] for some in super().generate(requests)]


@dataclass(frozen=True, slots=True)
class Setting:
    """A writer chooses what a proof is worth, 0, 1/2 or 1, and then what he says it is; each problem is learned apart.

    An arm is a method whose ``judge`` is ``here``: one that sees what proofs are worth.

    Args:
        problems: all asked in every step.
        hard: share of problems of which he has no complete proof.
        spread: standard deviation of the logits at the start.
        steps, group, lr: of training.
    """

    problems: int = 12
    hard: float = 0.5
    spread: float = 0.5
    steps: int = 60
    group: int = 8
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``calibrated``, the exact chance that what is said is what the proof is worth, mean over problems;
        ``worth``, the expected worth; ``rollouts``."""
        if arm.get("judge") != "here":
            raise UsageError("an arm of setting 'self_scores' is a method whose judge is 'here'")
        method = {k: v for k, v in arm.items() if k != "judge"}
        method["options"] = {"judge": Keywords(REPLIES), **method.get("options", {})}
        k = len(SCORES)
        able = [k - (i < self.hard * self.problems) for i in range(self.problems)]
        tree = Tree.of([[[0.0] * k] * n for n in able])
        policy = TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))
        engine = Writer(policy)
        tasks = [Task(str(i), str(i), kind="none") for i in range(self.problems)]
        training = Training(self.steps, self.problems, self.group, self.lr)
        train(policy, tasks, NoVerifier(), method, training, seed, engine=engine)
        p, calibrated, worth, start = policy.leaf_logprobs().exp().detach().numpy(), [], [], 0
        for n in able:
            mine = p[start : start + n * k].reshape(n, k)
            mine, start = mine / mine.sum(), start + n * k
            calibrated.append(float(np.trace(mine)))
            worth.append(float(mine.sum(1) @ np.array(SCORES[:n])))
        return {
            "calibrated": float(np.mean(calibrated)),
            "worth": float(np.mean(worth)),
            "rollouts": engine.sampled,
        }


def _written(path: str) -> str:
    worth, said = (SCORES[int(x)] for x in path.split("/"))
    return f"## Solution\nworth {worth:g}\n## Self-Evaluation\n{FORM.format(said)}"
