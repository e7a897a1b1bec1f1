"""Questions in several wordings, about which a policy is more or less sure and not always of the same."""

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
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` questions in ``views`` wordings, each with ``answers`` answers, one of them right.

    The logits of an answer at the start are ``known`` for the right one, plus normal noise that the wordings of a
    question share (``shared``) and noise of each wording (``spread``). Wordings have no parameters in common. The
    prompt of wording v of question i is the path ``i/v``; wordings from the second on are ``meta["paraphrases"]``. The
    first ``labelled`` share of the tasks has ``meta["labelled"]`` true, the others false.

    Args:
        tasks, views, answers: counts.
        known, shared, spread: see above.
        labelled: share of tasks.
        steps, prompts, group, lr, optimizer: of training; ``group`` responses per question, over all its wordings.

    Raises:
        UsageError: a count below 1 (2 for answers).
    """

    tasks: int = 16
    views: int = 2
    answers: int = 4
    known: float = 1.0
    shared: float = 0.3
    spread: float = 1.0
    labelled: float = 1.0
    steps: int = 200
    prompts: int = 4
    group: int = 16
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if min(self.tasks, self.views) < 1 or self.answers < 2:
            raise UsageError("setting 'views': needs at least one task, one view and two answers")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions and wordings: ``right``: probability of the right answer;
        ``agree``: that two responses, to two different wordings, are the same (to the same where there is one);
        ``start/...`` of both; ``area`` of ``right`` over training; ``rollouts``."""
        rng = np.random.default_rng([seed, 29])
        gold = rng.integers(self.answers, size=self.tasks)
        tree = Tree.of([[[0.0] * self.answers for _ in range(self.views)] for _ in range(self.tasks)])
        shape = (self.tasks, self.views, self.answers)
        wanted = self.spread * rng.standard_normal(shape) + self.shared * rng.standard_normal((shape[0], 1, shape[2]))
        wanted[np.arange(self.tasks), :, gold] += self.known
        logits = np.zeros(tuple(tree.children.shape))
        for i in range(self.tasks):
            for v in range(self.views):
                node = int(tree.children[int(tree.children[0, i]), v])
                logits[node, : self.answers] = wanted[i, v]
        policy = TabularPolicy(tree, torch.from_numpy(logits))

        def measure() -> dict[str, float]:
            p = policy.leaf_logprobs().detach().exp().numpy().reshape(shape)
            p = p / p.sum(-1, keepdims=True)
            right = float(p[np.arange(self.tasks), :, gold].mean())
            both = np.einsum("iva,iwa->ivw", p, p)
            other = ~np.eye(self.views, dtype=bool) if self.views > 1 else np.ones((1, 1), dtype=bool)
            return {"right": right, "agree": float(both[:, other].mean())}

        def judge(task: Task, response: str) -> Verdict:
            passed = response == task.reference
            return Verdict(float(passed), passed)

        tasks = [
            Task(
                str(i),
                f"{i}/0",
                reference=str(gold[i]),
                kind="tabular",
                meta={
                    "paraphrases": [f"{i}/{v}" for v in range(1, self.views)],
                    "labelled": i < round(self.labelled * self.tasks),
                },
            )
            for i in range(self.tasks)
        ]
        curve, engine, before = list[float](), Counting(policy), measure()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, arm, training, seed, lambda *_: curve.append(measure()["right"]), engine)
        return {
            **measure(),
            **{f"start/{k}": x for k, x in before.items()},
            "area": float(np.mean(curve)),
            "rollouts": engine.sampled,
        }
