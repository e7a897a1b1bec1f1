"""Questions with a few right arms among many, which a policy answers better with a right draft in its prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """``tasks`` bandits. Shown a draft, the policy adds ``copy`` to the logit of the draft's arm, right or wrong.

    The prompt of question i is ``i``, with arm d as a draft ``i/0/d``. Both have the same logits but for the draft, so
    what is learned with a draft is learned without. At ``copy`` 3 an arm of probability 0.05 has 0.5 once it is shown.

    Args:
        tasks: questions, each asked equally often.
        arms, right: answers to a question, and how many of them are right.
        hard: subtracted from the logits of right arms at the start; other logits are normal.
        copy: see above.
        steps, prompts, group, lr, optimizer: of training.
    """

    tasks: int = 8
    arms: int = 20
    right: int = 1
    hard: float = 1.0
    copy: float = 3.0
    steps: int = 100
    prompts: int = 4
    group: int = 16
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of answers without a draft, means over tasks.

        ``final``: probability of a right arm; ``area``: its mean over training; ``diversity``: entropy in nats among
        right arms; ``breadth``: ``final`` times exp(that) by the number of right arms; ``start``; ``rollouts``.
        """
        rng = np.random.default_rng([seed, 13])
        logits = 0.5 * rng.standard_normal((self.tasks, self.arms))
        right = np.zeros((self.tasks, self.arms))
        for row in right:
            row[rng.choice(self.arms, self.right, replace=False)] = 1
        # Token 0 is no answer: it leads to the drafts.
        answers = [[0.0, *row.tolist()] for row in right]
        tree = Tree.of([[[0.0, *([a] * self.arms)], *a[1:]] for a in answers])
        policy = Drafting(tree, self.tasks, self.copy)
        with torch.no_grad():
            policy.logits[policy.plain, 1 : self.arms + 1] = torch.from_numpy(logits - self.hard * right)

        def good() -> np.ndarray:
            with torch.no_grad():
                p = policy.log_policy()[policy.plain, 1 : self.arms + 1].exp().numpy()
            return np.asarray(p * right)

        def chance() -> float:
            return float(good().sum(-1).mean())

        start, curve, engine = chance(), list[float](), Counting(policy)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(tree), arm, training, seed, lambda *_: curve.append(chance()), engine)
        p = good()
        among = p / p.sum(-1, keepdims=True).clip(1e-300)
        nats = -(among * np.log(among.clip(1e-300))).sum(-1)
        return {
            "start": start,
            "final": chance(),
            "area": float(np.mean(curve)),
            "diversity": float(nats.mean()),
            "breadth": float((p.sum(-1) * np.exp(nats) / self.right).mean()),
            "rollouts": engine.sampled,
        }


class Drafting(TabularPolicy):
    """A tabular policy whose decision after a draft is the one without it, with ``copy`` added to the draft's logit.

    Token 0 is never chosen. Of the quantities only the entropy and the hidden state are those of such a policy.

    Args:
        tree: as :meth:`Setting.run` makes it.
        tasks: children of its root.
        copy: see above.
        logits: as in :class:`~assay.policies.tabular.TabularPolicy`.
    """

    quantities = frozenset({"entropy", "hidden"})

    def __init__(self, tree: Tree, tasks: int, copy: float, logits: Float[Tensor, "K W"] | None = None):
        super().__init__(tree, logits)
        self.tasks, self.copy = tasks, copy
        children = tree.children
        self.plain = children[0, :tasks]
        self.owner = torch.arange(len(children))
        self.shift = torch.zeros(children.shape, dtype=self.logits.dtype)
        for node in self.plain.tolist():
            drafts = children[children[node, 0]]
            for token in range(1, len(drafts)):
                if drafts[token] > 0:
                    self.owner[drafts[token]] = node
                    self.shift[drafts[token], token] = copy

    def log_policy(self, temperature: float = 1.0) -> Float[Tensor, "K W"]:
        """Log-probability of each token at each node; minus infinity for token 0 of all nodes but the root."""
        legal = self.tree.children != 0
        legal[1:, 0] = False
        tied = self.logits[self.owner] + self.shift
        return (tied / temperature).masked_fill(~legal, -torch.inf).log_softmax(-1)

    def twin(self) -> Drafting:
        return Drafting(self.tree, self.tasks, self.copy, self.logits)
