"""A policy that answers under instructions, each of which it can follow to some success that training raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Under instruction ``j`` (its text is that number) an answer is right with a probability of its own at the start.

    One wrong and one right answer per instruction; what is learned under one says nothing of the others.

    Args:
        chances: of a right answer under each, at the start.
        spread: standard deviation of what is added to the logits.
        steps, prompts, group, lr: of training.
    """

    chances: tuple[float, ...] = (0.2, 0.3, 0.6, 0.4)
    spread: float = 0.2
    steps: int = 40
    prompts: int = 3
    group: int = 8
    lr: float = 0.3

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``area``, the mean over steps of the share of right responses that are learned from; ``best``, the
        exact chance under the instruction where that is greatest of those used in the last step; ``rollouts``."""
        p = np.array(self.chances)
        logits = np.log(p / (1 - p)) + jitter(self.spread, seed, len(p))
        tree = Tree.of([[0.0, 1.0] for _ in p])
        table = torch.zeros(tree.children.shape, dtype=torch.float64)
        for j, z in enumerate(logits):
            node = tree.node([j])
            assert node is not None
            table[node, 1] = float(z)
        policy, passed, used = TabularPolicy(tree, table), [], {0}
        engine = Counting(policy)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            nonlocal used
            rows = [i for i, task in enumerate(batch.tasks) if not task.meta.get("probe")]
            if rows:
                passed.append(float(np.mean([batch.verdicts[i].score for i in rows])))
                used = {int(batch.episodes[i].prompt[0]) for i in rows}

        training = Training(self.steps, self.prompts, self.group, self.lr)
        train(policy, [Task("q", "", kind="tabular")], _judge, arm, training, seed, watch, engine)
        right = policy.leaf_logprobs().exp().detach().numpy().reshape(len(p), 2)
        after = right[:, 1] / right.sum(-1)
        return {
            "area": float(np.mean(passed)),
            "best": float(after[sorted(used)].max()),
            "rollouts": engine.sampled,
        }


def _judge(task: Task, response: str) -> Verdict:
    """Right is the second answer, whatever the instruction."""
    return Verdict.right() if response == "1" else Verdict.wrong()
