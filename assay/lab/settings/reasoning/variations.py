"""Problems with several ways to be solved, not all of them good for every variation of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task

FOREIGN = -30.0
"""Logit of what belongs to another question."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Q questions in V variations each; a variation is solved by one of S ways, some of which are right for it.

    Problem v of question q, prompt ``q V + v``, is answered by one of the question's ways, ``q S + s``. A share
    ``sound`` of ways is right for nine in ten variations, the others for one in five; for each variation at least one
    is right. Logits of answering are theta(q, s) + phi(q, v, s), so that what is learned of one variation is half of
    what is known of another. Training asks the first variation of each question alone; the last one is never asked and
    cannot be written. A writer is asked by ``Q V`` and a way, and names one of the question's other variations.

    Args:
        questions, variations, ways: Q, V and S; prompts of writers begin with Q V.
        sound: in (0, 1).
        spread: standard deviation of logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    questions: int = 12
    variations: int = 4
    ways: int = 6
    sound: float = 0.3
    spread: float = 0.5
    steps: int = 40
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures: ``solved``, the chance to be right on the questions as they are asked; ``held_out``,
        that one of four tries is, on the last variations; ``entropy`` in nats of answers to what is asked; each with
        ``/start``; and ``rollouts``."""
        policy, right = self.policy(seed)
        tasks = [Task(str(q), str(q * self.variations), kind="tabular") for q in range(self.questions)]
        before, engine = self.measure(policy, right), Counting(policy)

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, engine=engine)
        started = {f"{name}/start": value for name, value in before.items()}
        return {**self.measure(policy, right), **started, "rollouts": engine.sampled}

    def policy(self, seed: int) -> tuple[Varied, np.ndarray]:
        """Return the policy at the start, and which ways are right, ``(Q, V, S)``."""
        rng = np.random.default_rng([seed, 41])
        shape = self.questions, self.variations, self.ways
        sound = rng.random((shape[0], 1, shape[2])) < self.sound
        right = rng.random(shape) < np.where(sound, 0.9, 0.2)
        right[np.arange(shape[0])[:, None], np.arange(shape[1]), rng.integers(shape[2], size=shape[:2])] = True
        return Varied(right, torch.from_numpy(jitter(self.spread, seed, *shape))), right

    @torch.no_grad()
    def measure(self, policy: Varied, right: np.ndarray) -> dict[str, float]:
        p = policy.answering().softmax(-1)
        chance = (p * torch.from_numpy(right)).sum(-1)
        entropy = -(p[:, 0] * p[:, 0].log()).sum(-1)
        return {
            "solved": float(chance[:, 0].mean()),
            "held_out": float((1 - (1 - chance[:, -1]) ** 4).mean()),
            "entropy": float(entropy.mean()),
        }


class Varied(TabularPolicy):
    """The policy of :class:`Setting`.

    Args:
        right: ``(Q, V, S)`` bool.
        phi: ``(Q, V, S)`` at the start.
    """

    def __init__(self, right: np.ndarray, phi: Tensor):
        questions, variations, ways = right.shape
        self.shape = questions, variations, ways
        problems, every = questions * variations, questions * ways
        solving = np.zeros((problems, every))
        for q in range(questions):
            for v in range(variations):
                solving[q * variations + v, q * ways : (q + 1) * ways] = right[q, v]
        self.tree = Tree.of([*solving.tolist(), [[0.0] * problems] * every])
        self.theta = torch.nn.Parameter(torch.zeros(questions, ways, dtype=phi.dtype))
        self.phi = torch.nn.Parameter(phi.clone())
        self.writing = torch.nn.Parameter(torch.zeros(questions, ways, variations, dtype=phi.dtype))
        self.module = torch.nn.ParameterDict({"theta": self.theta, "phi": self.phi, "writing": self.writing})
        self.solve = torch.tensor([self.tree.node((p,)) for p in range(problems)])
        self.write = torch.tensor([self.tree.node((problems, w)) for w in range(every)])

    def answering(self) -> Tensor:
        """Logits ``(Q, V, S)`` of a question's ways."""
        return self.theta[:, None] + self.phi

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        questions, variations, ways = self.shape
        table = self.phi.new_full(self.tree.children.shape, FOREIGN)
        own = torch.arange(questions)
        columns = (own[:, None] * ways + torch.arange(ways))[:, None].expand(-1, variations, -1).reshape(-1, ways)
        table = table.index_put((self.solve[:, None], columns), self.answering().reshape(-1, ways))
        # Neither the problem as it is asked nor the one that is held out is written.
        inner = torch.arange(1, variations - 1)
        columns = (own[:, None] * variations + inner)[:, None].expand(-1, ways, -1).reshape(-1, len(inner))
        return table.index_put((self.write[:, None], columns), self.writing[..., 1:-1].reshape(-1, len(inner)))

    def twin(self) -> Varied:
        return deepcopy(self)
