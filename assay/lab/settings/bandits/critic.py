"""A critic of right and wrong solutions, and an actor that does what it is told, not always well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import norm

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task, Verdict

WRONG, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Setting:
    """Solutions are right with probability ``share``, and their feature is normal about 1 or -1.

    The critic sees in which of ``bins`` the feature lies. It says right or wrong, and of a wrong one why, well or
    badly. The actor keeps what is called right; of what is called wrong it spoils a right one with probability
    ``spoil`` and mends a wrong one with probability ``good`` or ``bad``, by the hint.

    An arm is method S193 with ``options``; with ``judged = False`` every judgement counts as right, so that the reward
    is that of the refinement alone.

    Args:
        share: of right solutions.
        bins: of the feature.
        spoil, good, bad: see above.
        items: solutions that are asked about in turn.
        steps, prompts, group, lr, optimizer: of training.
    """

    share: float = 0.3
    bins: int = 8
    spoil: float = 0.1
    good: float = 0.6
    bad: float = 0.2
    items: int = 2000
    steps: int = 150
    prompts: int = 16
    group: int = 4
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained critic: ``sensitivity``, of right solutions called right;
        ``specificity``, of wrong ones called wrong; their mean ``balanced``; ``hint``, how often a wrong solution that
        is called wrong gets the good hint; ``refined``, accuracy after refinement; ``rollouts``."""
        if arm.get("name") != "S193":
            raise UsageError("an arm of setting 'critic' is method S193 with options")
        rng = np.random.default_rng([seed, 7])
        label = rng.random(self.items) < self.share
        feature = (2 * label - 1) + rng.standard_normal(self.items)
        edges = norm.ppf(np.arange(1, self.bins) / self.bins)
        tasks = [
            Task(
                f"{i}",
                f"{b}",
                str(bool(y)),
                "critique",
                meta={"question": str(i), "response": str(int(y)), "answer": str(RIGHT)},
            )
            for i, (b, y) in enumerate(zip(np.searchsorted(edges, feature), label, strict=True))
        ]
        tree = Tree.of([[[0, 0], 0] for _ in range(self.bins)])
        policy = TabularPolicy(tree)
        engine = Counting(policy)
        actor = {"actor": Actor(self, seed), "verify": "exact", "template": "{question}|{response}|{critique}"}
        method = {"name": "S193", "options": {**actor, "kl_weight": 0.0, **arm.get("options", {})}}
        verdict = self.verdict if arm.get("judged", True) else lambda task, response: Verdict.right()
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, verdict, method, training, seed, engine=engine)
        return {**self.measure(policy, edges), "rollouts": engine.sampled}

    def verdict(self, task: Task, response: str) -> Verdict:
        """Whether the critic's judgement is that of the solution."""
        passed = (said(response) == RIGHT) is (task.reference == "True")
        return Verdict(float(passed), passed)

    def measure(self, policy: TabularPolicy, edges: np.ndarray) -> dict[str, float]:
        with torch.no_grad():
            pi = policy.log_policy().exp().numpy()
        first = policy.tree.children[0].numpy()
        right = pi[first, RIGHT]
        hints = pi[[int(policy.tree.children[node, WRONG]) for node in first], 1]
        borders = np.concatenate([[-np.inf], edges, [np.inf]])
        of_right, of_wrong = (np.diff(norm.cdf(borders - mean)) for mean in (1.0, -1.0))
        mended = (1 - right) * (hints * self.good + (1 - hints) * self.bad)
        kept = right + (1 - right) * (1 - self.spoil)
        sensitivity, specificity = float(of_right @ right), float(of_wrong @ (1 - right))
        return {
            "sensitivity": sensitivity,
            "specificity": specificity,
            "balanced": (sensitivity + specificity) / 2,
            "hint": float(of_wrong @ ((1 - right) * hints) / max(specificity, 1e-9)),
            "refined": self.share * float(of_right @ kept) + (1 - self.share) * float(of_wrong @ mended),
        }


def said(response: str) -> int:
    """What a critique calls the solution: its path is the judgement and, of a wrong one, the hint."""
    return int(response.partition("/")[0])


class Actor:
    """An engine that answers ``question|solution|critique`` with a new solution, 1 for a right one."""

    def __init__(self, setting: Setting, seed: int):
        self.setting, self.rng = setting, np.random.default_rng([seed, 17])

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, self.answer(str(r.prompt)), "eos")] for r in requests]

    def answer(self, prompt: str) -> str:
        _, solution, critique = prompt.split("|")
        path = [int(x) for x in critique.split("/")]
        if path[0] == RIGHT:
            return solution
        s = self.setting
        chance = 1 - s.spoil if solution == str(RIGHT) else (s.good if path[-1] else s.bad)
        return str(RIGHT if self.rng.random() < chance else WRONG)
