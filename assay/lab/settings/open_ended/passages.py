"""Lists of passages to rank, by a policy with one score per passage; few of them are relevant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task, Verdict
from assay.verify.lists.rank_metrics import ndcg
from assay.verify.lists.ranking import Ranking


@dataclass(frozen=True, slots=True)
class Setting:
    """Query q has ``passages`` passages, of normal worth; the ``relevant`` best are labelled relevant.

    A teacher's list, which is the task's gold order, is by worth plus normal noise of deviation ``teacher``; lists
    whose NDCG@k by the labels is below ``threshold`` are drawn again. A response names all passages in some order, one
    by one with probability proportional to exp(score) among those that are left; scores begin normal with deviation
    ``spread``, those of relevant passages lower by ``hard``. Verdicts are NDCG@k.

    Args:
        queries, passages, relevant, teacher, threshold, spread, hard: see above.
        k: places that count.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: no passage relevant, or all, or more than 6 passages.
    """

    queries: int = 6
    passages: int = 5
    relevant: int = 1
    teacher: float = 0.5
    threshold: float = 0.4
    spread: float = 1.0
    hard: float = 2.0
    k: int = 2
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not 0 < self.relevant < self.passages <= 6:
            raise UsageError(f"setting 'passages': {self.relevant} relevant of {self.passages} passages, at most 6")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over queries: ``ndcg``: expected NDCG@k by the labels;
        ``area``: its mean over training; ``start``; ``first``: probability that a relevant passage is first;
        ``rollouts``."""
        rng = np.random.default_rng([seed, 208])
        tasks, labels = [], []
        for q in range(self.queries):
            worth = rng.standard_normal(self.passages)
            good = {int(i) for i in np.argsort(-worth)[: self.relevant]}
            grades = dict.fromkeys(good, 1.0)
            while True:
                order = np.argsort(-(worth + self.teacher * rng.standard_normal(self.passages))).tolist()
                if ndcg(order, grades, self.k) >= self.threshold:
                    break
            reference = {"order": [str(i + 1) for i in order], "relevance": [str(i + 1) for i in sorted(good)]}
            tasks.append(Task(str(q), str(q), reference=reference, kind="ranking"))
            labels.append(good)
        scores = self.spread * rng.standard_normal((self.queries, self.passages))
        for q, good in enumerate(labels):
            scores[q, sorted(good)] -= self.hard
        policy = Scored(torch.from_numpy(scores))
        lists = list(permutations(range(self.passages)))
        worths = np.array([[ndcg(order, dict.fromkeys(good, 1.0), self.k) for order in lists] for good in labels])
        firsts = np.array([[order[0] in good for order in lists] for good in labels])

        def measure(of: np.ndarray) -> float:
            with torch.no_grad():
                p = policy.leaf_logprobs().exp().numpy().reshape(self.queries, -1)
            return float((p / p.sum(-1, keepdims=True) * of).sum(-1).mean())

        start, curve, engine = measure(worths), list[float](), Naming(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        verifier, known = Ranking("ndcg", k=self.k), dict[tuple[str, str], Verdict]()

        def judge(task: Task, response: str) -> Verdict:
            key = task.id, response
            if key not in known:
                known[key] = verifier(task, response)
            return known[key]

        train(policy, tasks, judge, arm, training, seed, lambda *_: curve.append(measure(worths)), engine)
        return {
            "ndcg": measure(worths),
            "area": float(np.mean(curve)),
            "start": start,
            "first": measure(firsts),
            "rollouts": engine.sampled,
        }


class Scored(TabularPolicy):
    """A policy over orders: the next passage is drawn from those left, in proportion to exp(score).

    The prompt's token is the query; a token is the place of a passage among those left, the last of which is not
    decided. The leaves of a query are all orders, as ``itertools.permutations`` has them.

    Args:
        scores: ``(queries, passages)`` at the start.
    """

    def __init__(self, scores: Tensor):
        self.scores = torch.nn.Parameter(scores.clone())
        self.module = torch.nn.ParameterDict({"scores": self.scores})

        def nested(left: int) -> Any:
            return [nested(left - 1) for _ in range(left)] if left > 1 else 0.0

        queries, passages = scores.shape
        self.tree = Tree.of([nested(passages) for _ in range(queries)])
        self.index = torch.zeros(self.tree.children.shape, dtype=torch.int64)
        for path in self.tree.paths:
            left = list(range(passages))
            for depth, token in enumerate(path[1:], 1):
                node = self.tree.node(path[:depth])
                assert node is not None
                self.index[node, : len(left)] = torch.tensor([path[0] * passages + i for i in left])
                left.pop(token)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        return self.scores.flatten()[self.index]

    @cached_property
    def passages(self) -> int:
        return self.scores.shape[1]

    def twin(self) -> Scored:
        return deepcopy(self)


class Naming(Counting):
    """An engine whose episodes read as lists of passages, numbered from 1."""

    policy: Scored

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, text=self.named(e.tokens)) for e in row] for row in super().generate(requests)]

    def named(self, tokens: np.ndarray) -> str:
        """Return the list that tokens choose."""
        left = list(range(1, self.policy.passages + 1))
        chosen = [left.pop(token) for token in tokens.tolist()]
        return f"<think></think><answer>{' > '.join(f'[{i}]' for i in chosen + left)}</answer>"
