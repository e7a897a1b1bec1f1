"""Answers that may be looked at a second time, which a policy hardly ever does and a teacher always."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.reasoning.miracle import told
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, text_of
from assay.types import Episode, Prompt, Task, Verdict

END, GO_ON = 0, 1
"""What can be said next: the end; or an answer, after an answer a check, and after a check a second answer."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is an answer, or an answer, a check and a second answer; the last one counts.

    Whether it is right is drawn anew each time: with a chance of ``first`` where nothing was checked, ``second`` where
    it was. At the start a check is made with a chance of ``checks``. An arm gets a teacher, an engine, by naming
    ``"here"``: of every response it says, in the form that is asked for, a check and a second answer.

    Args:
        first, second, checks: see above.
        spread: standard deviation of the logits around that.
        steps, prompts, group, lr, optimizer: of training.
    """

    first: float = 0.3
    second: float = 0.7
    checks: float = 1e-3
    spread: float = 0.1
    steps: int = 150
    prompts: int = 2
    group: int = 8
    lr: float = 3.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact chances at the end: ``checks`` of a check, ``right`` of a right response; at the start
        ``checks_before``; and ``rollouts``, which the teacher's are not among."""
        policy = self.policy(seed)
        engine, before = Ending(policy), self.checked(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=4)
        tasks = [Task(str(i), f"question {i}", "right", "tabular") for i in range(self.prompts)]
        chances = {text_of(p): c for p, c in zip(policy.tree.paths, policy.tree.rewards.tolist(), strict=True)}
        rng = np.random.default_rng([seed, 11])

        def verifier(task: Task, response: str) -> Verdict:
            return Verdict.right() if rng.random() < chances.get(response, 0.0) else Verdict.wrong()

        train(policy, tasks, verifier, told(arm, Teacher()), training, seed, engine=engine)
        return {
            "checks": self.checked(policy),
            "right": policy.expected_reward().item(),
            "checks_before": before,
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start."""
        tree = Tree.of([0.0, [self.first, [0.0, [self.second]]]])
        logits = torch.from_numpy(jitter(self.spread, seed, *tree.children.shape))
        for path, chance in (((), 1 - 1e-3), ((1,), self.checks), ((1, 1), 1 - 1e-3)):
            logits[tree.node(path), GO_ON] += math.log(chance / (1 - chance))
        return TabularPolicy(tree, logits)

    def checked(self, policy: TabularPolicy) -> float:
        """Chance of a check."""
        with torch.no_grad():
            return float(policy.expected_reward(torch.tensor([float(len(p) > 2) for p in policy.tree.paths])))


class Ending(Counting):
    """Samples paths; a text's tokens are its numbers, and its end is a token."""

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([*map(int, re.findall(r"\d+", text)), *([END] if end else [])], dtype=np.int64)


class Teacher:
    """An engine that says of a response: check, and answer again."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        return NONE

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NONE

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        text = f"<reason>{GO_ON}</reason><phrase>{GO_ON}</phrase>"
        return [[Episode(NONE, NONE, NONE.astype(bool), None, text, "eos")] * r.n for r in requests]


NONE = np.zeros(0, dtype=np.int64)
