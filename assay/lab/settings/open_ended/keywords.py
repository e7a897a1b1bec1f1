"""Responses of a few words, scored by how many of those that are wanted they contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is ``length`` words of a vocabulary; its score is the share of the ``wanted`` ones that it contains.

    A word said twice counts once, so that two pieces of a response may be worth what one is. Any part of a response can
    be scored alike: an arm gets the score as a function of task and text by naming ``"here"`` as the ``score`` of its
    reward. Which words are wanted is random.

    Args:
        words: of the vocabulary, one token each.
        length: of every response.
        wanted: at most ``length``.
        spread: standard deviation of the policy's logits at the start.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: more words are wanted than there are, or than fit into a response.
    """

    words: int = 8
    length: int = 4
    wanted: int = 4
    spread: float = 0.5
    steps: int = 25
    prompts: int = 2
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not 0 < self.wanted <= min(self.words, self.length):
            raise UsageError(f"setting 'keywords': {self.wanted} wanted of {self.words} words in {self.length}")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures: ``score``, expected of the trained policy; ``area``: its mean over training; ``all``:
        the chance of a response with every wanted word; ``start``; ``rollouts``."""
        rng = np.random.default_rng([seed, 7])
        wanted = frozenset(rng.choice(self.words, self.wanted, replace=False).tolist())

        def score(task: Task, text: str) -> float:
            return len(wanted & set(path_of(text) or ())) / self.wanted

        scores = [len(wanted & set(path)) / self.wanted for path in product(range(self.words), repeat=self.length)]
        tree = Tree.uniform(self.words, self.length, scores)
        noise = self.spread * rng.standard_normal(tuple(tree.children.shape))
        policy = TabularPolicy(tree, torch.from_numpy(noise))
        method = {**arm}
        reward = method.get("reward")
        if isinstance(reward, Mapping) and reward.get("score") == "here":
            method["reward"] = {**reward, "score": score}

        def verdict(task: Task, response: str) -> Verdict:
            value = score(task, response)
            return Verdict(value, value == 1)

        def expected() -> float:
            with torch.no_grad():
                return float(policy.expected_reward())

        curve: list[float] = []
        start = expected()
        tasks = [Task(str(i), "", reference="here", kind="tabular") for i in range(self.prompts)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        engine = Counting(policy)
        train(policy, tasks, verdict, method, training, seed, lambda *_: curve.append(expected()), engine)
        with torch.no_grad():
            complete = float(policy.expected_reward((tree.rewards == 1).to(torch.float64)))
        area = float(np.mean(curve))
        return {"score": curve[-1], "area": area, "all": complete, "start": start, "rollouts": engine.sampled}
