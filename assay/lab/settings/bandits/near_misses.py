"""Numeric questions on record with answers near and far, and a policy whose skill carries over to others."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """The answer to a question is a number below ``numbers``; a response is a number.

    The logit of number a to question q is a skill that all questions share, by how far a is from the right answer (from
    ``far`` on the same for all), and what the question has of its own, of which nothing is learned. The skill at the
    start prefers near numbers, hardly the right one to those beside it. Half of the questions have ``records`` answers
    on record, drawn from the policy at the start, the right one among them; of each of these numbers the verdict is
    false with chance ``noise``, for good. The other questions test what carries over.

    Args:
        questions, numbers, records, far: see above.
        near: numbers within so much of the right one are its near misses.
        noise: see above.
        spread: standard deviation of what questions have of their own.
        steps, prompts, group, lr, optimizer: of training; ``group`` records are drawn for a prompt.
    """

    questions: int = 32
    numbers: int = 48
    records: int = 12
    far: int = 12
    near: int = 2
    noise: float = 0.2
    spread: float = 0.5
    steps: int = 60
    prompts: int = 16
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over the questions that are not on record.

        ``near``: probability of the right answer, given that it or a near miss is said; ``right``; ``near/start`` and
        ``right/start``: of the policy that only imitates the records; ``pairs``: mean number learned from in a step.
        """
        rng = np.random.default_rng([seed, 37])
        truth = rng.integers(2, self.numbers - 2, size=self.questions)
        gaps = np.minimum(np.abs(np.arange(self.numbers) - truth[:, None]), self.far)
        own = jitter(self.spread, seed, self.questions, self.numbers)
        skill = -0.4 * np.arange(self.far + 1, dtype=np.float64)
        skill[0] = skill[1]
        policy = Skilled(torch.from_numpy(skill), torch.from_numpy(own), torch.from_numpy(gaps))
        p = self._chances(policy)
        seen = range(self.questions // 2)
        tasks = []
        for q in seen:
            said = [int(truth[q]), *rng.choice(self.numbers, size=self.records - 1, p=p[q]).tolist()]
            tasks.append(Task(str(q), str(q), str(truth[q]), "number", meta={"responses": [str(a) for a in said]}))
        before, pairs = self._measure(p, truth), list[float]()
        false = rng.random(p.shape) < self.noise

        def judge(task: Task, response: str) -> Verdict:
            right = (response == task.reference) != false[int(task.id), int(response)]
            return Verdict.right() if right else Verdict.wrong()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            pairs.append(metrics.get("pairs", 0.0))

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, judge, arm, training, seed, watch, Counting(policy))
        after = self._measure(self._chances(policy), truth)
        return {**after, **{f"{k}/start": v for k, v in before.items()}, "pairs": float(np.mean(pairs))}

    def _chances(self, policy: Skilled) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(policy.log_policy().exp()[policy.nodes, : self.numbers].numpy())

    def _measure(self, p: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        held = np.arange(self.questions // 2, self.questions)
        right = p[held, truth[held]]
        close = np.abs(np.arange(self.numbers) - truth[held, None]) <= self.near
        return {"near": float((right / (p[held] * close).sum(1)).mean()), "right": float(right.mean())}


class Skilled(TabularPolicy):
    """The policy of :class:`Setting`.

    Args:
        skill: ``(far + 1,)`` by distance, which is trained.
        own: ``(Q, K)`` of each question and number, which is not.
        gaps: ``(Q, K)`` distances.
    """

    def __init__(self, skill: Tensor, own: Tensor, gaps: Tensor):
        self.tree = Tree.of([[0.0] * own.shape[1] for _ in own])
        self.own, self.gaps = own, gaps
        self.skill = torch.nn.Parameter(skill.clone())
        self.module = torch.nn.ParameterDict({"skill": self.skill})
        self.nodes = torch.tensor([self.tree.node([q]) for q in range(len(own))])

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        table = self.own.new_zeros(self.tree.children.shape)
        columns = torch.arange(self.own.shape[1])
        return table.index_put((self.nodes[:, None], columns), self.skill[self.gaps] + self.own)

    def twin(self) -> Skilled:
        return deepcopy(self)
