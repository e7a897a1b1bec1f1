"""Questions whose right answers can be put in many words: a rule knows one of them, a judge is unsure of all."""

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
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Episode, Prompt, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """Each question has ``answers`` answers, the first ``right`` of them right; the verifier accepts only the first.

    The judge is an engine that replies 1 if it believes an answer to be right and 0 if not, with that probability. It
    is calibrated: it sees evidence e, normal with deviation 1 and mean ``separation`` / 2 for a right answer and its
    negative for a wrong one, once for each answer, and believes what follows by Bayes' rule. An arm gets it by naming
    ``"here"`` as the ``judge`` of its reward; it reads the lines ``Question:`` and ``Answer:`` of what it is asked.

    Args:
        questions: all asked in every step.
        answers, right: of each.
        separation: of the evidence; the judge is right about an answer of even odds with chance Phi(separation / 2).
        spread: standard deviation of the policy's logits at the start.
        steps, group, lr, optimizer: of training.

    Raises:
        UsageError: not at least one right and one wrong answer.
    """

    questions: int = 4
    answers: int = 12
    right: int = 4
    separation: float = 2.0
    spread: float = 0.5
    steps: int = 150
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not 0 < self.right < self.answers:
            raise UsageError(f"setting 'free_form': right = {self.right} of {self.answers} answers")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions: ``right``, the trained policy's chance to be right; ``area``:
        mean of it over training; ``accepted``: chance of an answer the judge says yes to; ``start``; ``rollouts``."""
        rng = np.random.default_rng([seed, 7])
        tree = Tree.of([[float(k == 0) for k in range(self.answers)]] * self.questions)
        noise = self.spread * rng.standard_normal(tuple(tree.children.shape))
        policy = TabularPolicy(tree, torch.from_numpy(noise))
        beliefs = self.beliefs(rng)
        method = {**arm}
        reward = method.get("reward")
        if isinstance(reward, Mapping) and reward.get("judge") == "here":
            method["reward"] = {**reward, "judge": Judge(beliefs)}
        tasks = [Task(str(i), str(i), reference="0", kind="tabular") for i in range(self.questions)]
        training = Training(self.steps, self.questions, self.group, self.lr, self.optimizer)
        truth = np.arange(self.answers) < self.right
        curve: list[float] = []
        engine = Counting(policy)

        def chances() -> np.ndarray:
            with torch.no_grad():
                p = policy.leaf_logprobs().exp().numpy().reshape(self.questions, self.answers)
            return p / p.sum(-1, keepdims=True)

        def rule(task: Task, response: str) -> Verdict:
            return Verdict.right() if response == "0" else Verdict.wrong()

        start = float((chances() * truth).sum(-1).mean())
        watch = lambda *_: curve.append(float((chances() * truth).sum(-1).mean()))  # noqa: E731
        train(policy, tasks, rule, method, training, seed, watch, engine)
        return {
            "start": start,
            "right": curve[-1],
            "area": float(np.mean(curve)),
            "accepted": float((chances() * (beliefs > 0.5)).sum(-1).mean()),
            "rollouts": engine.sampled,
        }

    def beliefs(self, rng: np.random.Generator) -> np.ndarray:
        """Return the judge's probability that each answer is right, ``(questions, answers)``."""
        truth = np.arange(self.answers) < self.right
        evidence = self.separation * (truth - 0.5) + rng.standard_normal((self.questions, self.answers))
        odds = math.log(self.right / (self.answers - self.right)) + self.separation * evidence
        believed: np.ndarray = 1 / (1 + np.exp(-odds))
        return believed


class Judge:
    """An engine whose reply is the token 0 or 1; see :class:`Setting`.

    Args:
        beliefs: its probability that each answer to each question is right.
    """

    def __init__(self, beliefs: np.ndarray):
        self.beliefs = beliefs

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(path_of(text) or (), dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._reply(str(request.prompt))] * request.n for request in requests]

    def _reply(self, prompt: str) -> Episode:
        found = re.search(r"^Question: (\d+)$.*^Answer: (\d+)$", prompt, re.DOTALL | re.MULTILINE)
        if found is None:
            empty = np.zeros(0, dtype=np.int64)
            return Episode(empty, empty, empty > 0, None, "nothing to judge", "eos")
        p = float(self.beliefs[int(found[1]), int(found[2])])
        tokens = np.asarray([int(p > 0.5)], dtype=np.int64)
        logprobs = np.log(np.asarray([max(p, 1 - p)], dtype=np.float32))
        return Episode(tokens[:0], tokens, tokens >= 0, logprobs, text_of(tokens), "eos")
