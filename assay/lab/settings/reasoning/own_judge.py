"""Questions that a policy answers and answers that it judges, out of one and the same knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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


@dataclass(frozen=True, slots=True)
class Setting:
    """The policy knows something of each answer to each question; how far it goes by that as a judge is learned.

    What it knows is a number k for each question and answer. It answers with softmax(k); asked whether an answer is
    right it says so with probability sigmoid(s (k - mean of k) + b), asked which of two is right the first with
    sigmoid(s (k_1 - k_2) + f), and asked to answer again after a wrong answer it does so with softmax(k) in which that
    answer's k is lower by c. It learns k, s, b, f and c: what is learned of one is of use to the others.

    With Q questions, a prompt is ``q`` to answer question q; ``Q/q/a`` to judge answer a, by 0 or 1; ``Q+1/q/a/b`` to
    say which of two is right, 0 for the first; ``Q+2/q/a`` to answer after a. An arm is a method.

    Args:
        questions, answers: how many of each, and answers to each.
        insight: s at the start; b, f and c are 0.
        spread: standard deviation of k at the start.
        rollouts: training ends after the step in which so many responses have been sampled, to derived tasks too.
        prompts, group, lr, optimizer: of training.
    """

    questions: int = 24
    answers: int = 4
    insight: float = 0.2
    spread: float = 1.0
    rollouts: int = 6_000
    prompts: int = 8
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions.

        ``solved``: probability of the right answer; ``judged``: of judging an answer of the policy's rightly, half of
        it for the right answer and half for the wrong ones, in the proportions it gives them; ``paired``: of telling
        the right answer from a wrong one, in either order; ``mended``: of the right answer after a wrong one;
        ``both``: mean of ``solved`` and ``judged``; ``NAME/start``: at the start; ``rollouts``.
        """
        policy, right = self.policy(seed)
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.questions)]
        before, engine = measure(policy, right), Counting(policy)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            if engine.sampled >= self.rollouts:
                raise _Spent

        steps = self.rollouts // (self.prompts * self.group) + 1
        training = Training(steps, self.prompts, self.group, self.lr, self.optimizer)
        with suppress(_Spent):
            train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, watch, engine)
        started = {f"{name}/start": value for name, value in before.items()}
        return {**measure(policy, right), **started, "rollouts": engine.sampled}

    def policy(self, seed: int) -> tuple[Knowing, np.ndarray]:
        """Return the policy at the start, and the right answer to each question."""
        right = np.random.default_rng([seed, 23]).integers(self.answers, size=self.questions)
        knowledge = torch.from_numpy(jitter(self.spread, seed, self.questions, self.answers))
        return Knowing(knowledge, right, self.insight), right


class _Spent(Exception):
    """The rollouts are used up."""


class Knowing(TabularPolicy):
    """The policy of :class:`Setting`.

    Args:
        knowledge: k ``(Q, A)`` at the start.
        right: ``(Q,)`` the right answers, which the tree's rewards go by.
        insight: s at the start.
    """

    def __init__(self, knowledge: Tensor, right: np.ndarray, insight: float):
        count, answers = knowledge.shape
        solve = [[float(a == r) for a in range(answers)] for r in right.tolist()]
        one = [[[float(a != r), float(a == r)] for a in range(answers)] for r in right.tolist()]
        two = [
            [[[float(a == r), float(b == r)] for b in range(answers)] for a in range(answers)] for r in right.tolist()
        ]
        again = [[row] * answers for row in solve]
        self.tree = Tree.of([*solve, one, two, again])
        self.knowledge = torch.nn.Parameter(knowledge.clone())
        # s, b, f and c.
        self.judging = torch.nn.Parameter(torch.tensor([insight, 0.0, 0.0, 0.0], dtype=knowledge.dtype))
        self.module = torch.nn.ParameterDict({"knowledge": self.knowledge, "judging": self.judging})
        node = lambda *path: self.tree.node(path)  # noqa: E731
        every, pick = range(count), range(answers)
        self.solving = torch.tensor([node(q) for q in every])
        self.single = torch.tensor([[node(count, q, a) for a in pick] for q in every])
        self.double = torch.tensor([[[node(count + 1, q, a, b) for b in pick] for a in pick] for q in every])
        self.again = torch.tensor([[node(count + 2, q, a) for a in pick] for q in every])

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        k, (s, b, f, c) = self.knowledge, self.judging
        answers = k.shape[1]
        table = k.new_zeros(self.tree.children.shape)
        columns = torch.arange(answers)
        table = table.index_put((self.solving[:, None], columns), k)
        table = table.index_put((self.single, torch.ones_like(self.single)), s * (k - k.mean(1, keepdim=True)) + b)
        gap = k[:, :, None] - k[:, None, :]
        table = table.index_put((self.double, torch.zeros_like(self.double)), s * gap + f)
        after = k[:, None] - c * torch.eye(answers, dtype=k.dtype)
        return table.index_put((self.again[:, :, None], columns), after)

    def twin(self) -> Knowing:
        return deepcopy(self)


@torch.no_grad()
def measure(policy: Knowing, right: np.ndarray) -> dict[str, float]:
    """Return what :meth:`Setting.run` does, of a policy as it stands."""
    p = policy.log_policy().exp()
    rows, truth = torch.arange(len(right)), torch.from_numpy(right)
    answered = p[policy.solving][:, : policy.knowledge.shape[1]]
    wrong = answered.index_put((rows, truth), torch.zeros(len(right), dtype=p.dtype))
    wrong = wrong / wrong.sum(1, keepdim=True)
    yes = p[policy.single][..., 1]
    judged = 0.5 * yes[rows, truth] + 0.5 * (wrong * (1 - yes)).sum(1)
    first = p[policy.double][..., 0]
    paired = 0.5 * (wrong * (first[rows, truth] + 1 - first[rows, :, truth])).sum(1)
    mended = (wrong * p[policy.again[rows], truth[:, None]]).sum(1)
    solved = answered[rows, truth]
    found = {"solved": solved, "judged": judged, "paired": paired, "mended": mended, "both": (solved + judged) / 2}
    return {name: float(value.mean()) for name, value in found.items()}
