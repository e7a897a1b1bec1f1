"""Answers of different worth, of which a policy chooses one of two, or gives one of many: one taste serves both."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay import catalogue
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.tasks.making.maker import Maker
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Questions with ``answers`` answers each, whose features are normal; an answer's worth is the first of them.

    The policy gives answer a with a chance that is proportional to exp(w . x_a), and of two that it is shown chooses
    the first with logit w . (x_first - x_second) + b. Choices are made from pairs of answers by the paper's pipeline;
    an arm says whether their order is drawn (``shuffled``). w and b begin near 0.

    Args:
        questions, answers, features: how many.
        spread: standard deviation of w and b at the start.
        steps, prompts, group, lr, optimizer: of training on choices.
    """

    questions: int = 32
    answers: int = 8
    features: int = 4
    spread: float = 0.1
    steps: int = 40
    prompts: int = 8
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``open``, the mean worth of the answers that the trained policy gives to the questions; ``start``,
        that at first; ``chosen``, the chance that it chooses rightly of two as they were shown; ``position``, b; and
        ``rollouts``."""
        rng = np.random.default_rng([seed, 23])
        x = torch.from_numpy(rng.standard_normal((self.questions, self.answers, self.features)))
        pairs = []
        for q, values in enumerate(x[:, :, 0].tolist()):
            good, bad = sorted(rng.choice(self.answers, 2, replace=False).tolist(), key=lambda a: -values[a])
            responses = [{"text": str(good), "reward": 1.0}, {"text": str(bad), "reward": 0.0}]
            pairs.append(Task(str(q), f"question {q}", kind="none", meta={"responses": responses, "pair": (good, bad)}))
        made = Maker(catalogue.make(arm["name"], **arm["options"]), {}, seed=seed).make(pairs).tasks
        shown = torch.tensor([[task.meta["pair"][k] for k in task.meta["order"]] for task in made])
        at = torch.arange(self.questions)
        policy = Tasted(
            x[at, shown[:, 0]] - x[at, shown[:, 1]], torch.from_numpy(jitter(self.spread, seed, self.features + 1))
        )
        engine, verdicts, verifier = Counting(policy), dict[tuple[str, str], Verdict](), build("verify", "choice")

        def judge(task: Task, response: str) -> Verdict:
            key = task.id, response
            if key not in verdicts:
                verdicts[key] = verifier(task, f"\\boxed{{{'AB'[int(response)]}}}")
            return verdicts[key]

        def worth(w: Tensor) -> float:
            return float(((x @ w).softmax(-1) * x[:, :, 0]).sum(-1).mean())

        tasks = [Task(t.id, str(q), t.reference, t.kind) for q, t in enumerate(made)]
        start = worth(policy.theta.detach()[:-1])
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, {"name": "grpo"}, training, seed, engine=engine)
        gold = torch.tensor(["AB".index(t.reference["answer"]) for t in made])
        with torch.no_grad():
            chances = policy.first().sigmoid()
            chosen = float(torch.where(gold == 0, chances, 1 - chances).mean())
        measured = {"open": worth(policy.theta.detach()[:-1]), "start": start, "chosen": chosen}
        return {**measured, "position": float(policy.theta.detach()[-1]), "rollouts": engine.sampled}


class Tasted(TabularPolicy):
    """A tabular policy that chooses one of two answers to each question: token 0 is the first that it is shown.

    Args:
        apart: ``(questions, features)``, features of the first answer less those of the second.
        weights: ``(features + 1,)``, w and b at first.
    """

    def __init__(self, apart: Tensor, weights: Tensor):
        self.tree = Tree.of([[1.0, 1.0] for _ in apart])
        self.apart = apart
        self.theta = torch.nn.Parameter(weights.clone())
        self.module = torch.nn.ParameterDict({"theta": self.theta})
        self.starts_at = torch.tensor([self.tree.node([i]) for i in range(len(apart))])

    def first(self) -> Tensor:
        """Logit of the first answer for each question: ``(questions,)``."""
        return self.apart @ self.theta[:-1] + self.theta[-1]

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = torch.zeros(self.tree.children.shape, dtype=self.theta.dtype)
        return table.index_put((self.starts_at, torch.zeros_like(self.starts_at)), self.first())

    def twin(self) -> Tasted:
        return deepcopy(self)
