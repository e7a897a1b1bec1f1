"""Users who take items of a catalogue, each with tastes of their own: what a generative recommender ranks highest."""

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
from assay.policies.tabular import TabularPolicy, Tree, text_of
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """An item is a path of ``depth`` tokens; ``items`` of the branching^depth paths are items, the same for all users.

    User u takes item i next with probability q_u(i), proportional to exp(popular_i + taste_ui), normal with deviations
    ``popular`` and ``taste``. A task is one user at one moment: the prompt says who, the reference what was taken,
    drawn from q_u; a response is right if it is that. ``moments`` of them are drawn beforehand and asked repeatedly.
    The policy begins with probabilities proportional to exp(popular_i + taste_ui + noise), noise of deviation
    ``noise``, and gives a path that is no item exp(``foreign`` + noise). The rollout of an arm gets the catalogue.

    Args:
        users, items, branching, depth, moments: counts.
        popular, taste, noise, foreign: see above.
        k: length of the list that is measured.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: more items than paths, or a list longer than the catalogue.
    """

    users: int = 8
    items: int = 48
    branching: int = 4
    depth: int = 3
    moments: int = 400
    popular: float = 0.5
    taste: float = 1.5
    noise: float = 1.5
    foreign: float = 0.0
    k: int = 5
    steps: int = 200
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not self.k <= self.items <= self.branching**self.depth:
            raise UsageError(f"setting 'shop': {self.items} items of {self.branching**self.depth} paths, k = {self.k}")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over users: its items in the order of their probability
        are the list.

        ``ndcg``: expected NDCG@k of what is taken next, sum_i q(i) / log2(rank_i + 2) over ranks below k; ``hit``: the
        chance that it is among the first k; ``area``: mean of ``ndcg`` over training; ``start``; ``best``: ``ndcg`` of
        the true order; ``valid``: probability of the items together; ``rollouts``.
        """
        rng = np.random.default_rng([seed, 61])
        paths = list(np.ndindex(*(self.branching,) * self.depth))
        chosen = np.sort(rng.choice(len(paths), self.items, replace=False))
        popular = self.popular * rng.standard_normal(self.items)
        utility = popular + self.taste * rng.standard_normal((self.users, self.items))
        truth = np.exp(utility)
        truth /= truth.sum(-1, keepdims=True)
        believed = np.full((self.users, len(paths)), self.foreign)
        believed[:, chosen] = utility
        policy = self.policy(believed + self.noise * rng.standard_normal(believed.shape))
        titles = [text_of(paths[i]) for i in chosen]
        who = rng.integers(self.users, size=self.moments)
        tasks = [
            Task(f"{n}", str(u), reference=titles[int(rng.choice(self.items, p=truth[u]))], kind="shop")
            for n, u in enumerate(who)
        ]
        worth = 1 / np.log2(np.arange(self.items) + 2) * (np.arange(self.items) < self.k)

        def measure() -> dict[str, float]:
            p = policy.leaf_logprobs().detach().exp().numpy().reshape(self.users, -1)
            p = (p / p.sum(-1, keepdims=True))[:, chosen]
            order = np.take_along_axis(truth, np.argsort(-p, axis=-1, kind="stable"), -1)
            return {
                "ndcg": float((order @ worth).mean()),
                "hit": float(order[:, : self.k].sum(-1).mean()),
                "valid": float(p.sum(-1).mean()),
            }

        def judge(task: Task, response: str) -> Verdict:
            passed = response == task.reference
            return Verdict(float(passed), passed)

        start, curve, engine = measure()["ndcg"], list[float](), Counting(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        method = {**arm, "rollout": {**arm.get("rollout", {"name": "catalogue"}), "items": titles}}
        train(policy, tasks, judge, method, training, seed, lambda *_: curve.append(measure()["ndcg"]), engine)
        return {
            **measure(),
            "area": float(np.mean(curve)),
            "start": start,
            "best": float((-np.sort(-truth, axis=-1) @ worth).mean()),
            "rollouts": engine.sampled,
        }

    def policy(self, logits: np.ndarray) -> TabularPolicy:
        """Return the policy whose paths have probabilities proportional to exp(``logits``) ``(users, paths)``."""
        tree = Tree.of([self.nested(self.depth) for _ in range(self.users)])
        table = np.zeros(tuple(tree.children.shape))
        weights = np.exp(logits - logits.max()).reshape(self.users, *(self.branching,) * self.depth)
        for depth in range(self.depth):
            mass = weights.sum(tuple(range(depth + 2, self.depth + 1)))
            for path in np.ndindex(mass.shape[:-1]):
                table[tree.node(path), : self.branching] = np.log(mass[path])
        return TabularPolicy(tree, torch.from_numpy(table))

    def nested(self, depth: int) -> Any:
        """Return the leaves of a user's tree as nested lists."""
        return [self.nested(depth - 1) for _ in range(self.branching)] if depth else 0.0
