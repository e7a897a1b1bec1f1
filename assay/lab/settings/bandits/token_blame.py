"""Pairs of responses whose better one has flaws of its own, and an evaluator that has an idea of single tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task

NEVER = -1e4
"""Logit of what no response does: it only leads to the evaluator's prompts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Responses of ``length`` tokens, at each of which one choice out of ``choices`` is right, whatever came before.

    On record are ``records`` responses to each question, drawn at random, each with the share of its tokens that are
    right: the better of two is seldom right throughout. Nothing is sampled. The prompt ``q/K`` (K = ``choices``) asks
    for a good response to question q and ``q/K+1`` for a bad one; under them the policy of the start finds the right
    tokens likelier, or less likely, by ``insight`` in logits plus normal noise of standard deviation ``noise``. What it
    does under the prompt ``q``, where it is trained, is uniform at first.

    Args:
        questions, length, choices, records: how many of each.
        insight, noise: of the evaluator.
        steps, prompts, group, lr, optimizer: of training; ``group`` records are drawn for a prompt.
    """

    questions: int = 8
    length: int = 4
    choices: int = 3
    records: int = 8
    insight: float = 1.0
    noise: float = 1.0
    steps: int = 60
    prompts: int = 8
    group: int = 5
    lr: float = 10.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures, means over questions and tokens.

        ``right``: probability that a token is right, in responses that the policy makes; ``start``; ``blamed``: mean
        over the recorded responses that are better than another, of how much less likely their wrong tokens have become
        than at the start, in nats per token; ``praised``: how much likelier their right ones; ``whole``: probability of
        a response that is right throughout.
        """
        rng = np.random.default_rng([seed, 31])
        answers = rng.integers(self.choices, size=(self.questions, self.length))
        policy = self.policy(answers, rng)
        records = [
            ["/".join(map(str, row)) for row in rng.integers(self.choices, size=(self.records, self.length)).tolist()]
            for _ in range(self.questions)
        ]
        tasks = [
            Task(str(q), str(q), kind="tabular", meta={"responses": [self._record(t, answers[q]) for t in texts]})
            for q, texts in enumerate(records)
        ]
        before, start = self._logprobs(policy, records), self._measure(policy, answers)["right"]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, TabularVerifier(policy.tree), arm, training, seed, engine=Counting(policy))
        gains = self._logprobs(policy, records) - before
        taken = np.array([[path_of(t) for t in texts] for texts in records])
        right = taken == answers[:, None]
        better = right.mean(-1) > right.mean(-1).min(1, keepdims=True)
        return {
            "start": start,
            **self._measure(policy, answers),
            "blamed": float(-gains[better[..., None] & ~right].mean()),
            "praised": float(gains[better[..., None] & right].mean()),
        }

    def policy(self, answers: np.ndarray, rng: np.random.Generator) -> TabularPolicy:
        """Return the policy at the start: trained prompts first, then those of the evaluator."""

        def nested(depth: int, more: int = 0) -> Any:
            rows = [0.0 if depth == 1 else nested(depth - 1) for _ in range(self.choices)]
            return [*rows, *(nested(self.length) for _ in range(more))]

        tree = Tree.of([nested(self.length, 2) for _ in range(self.questions)])
        policy = TabularPolicy(tree)
        with torch.no_grad():
            for q in range(self.questions):
                self._fill(policy, tree.node([q]), answers[q], 0.0, rng, 0)
                policy.logits[tree.node([q]), self.choices :] = NEVER
                for mode, sign in ((self.choices, 1.0), (self.choices + 1, -1.0)):
                    self._fill(policy, tree.node([q, mode]), answers[q], sign, rng, 0)
        return policy

    def _fill(self, policy: TabularPolicy, node: Any, answers: np.ndarray, sign: float, rng: Any, depth: int) -> None:
        """Set the logits of a prompt's nodes, from its first on."""
        if sign:
            row = self.noise * rng.standard_normal(self.choices)
            row[answers[depth]] += sign * self.insight
            policy.logits[node, : self.choices] = torch.from_numpy(row)
        for child in policy.tree.children[node, : self.choices].tolist():
            if child > 0:
                self._fill(policy, child, answers, sign, rng, depth + 1)

    def _record(self, text: str, answers: np.ndarray) -> dict[str, Any]:
        return {"text": text, "reward": float(np.mean(np.array(path_of(text)) == answers))}

    def _logprobs(self, policy: TabularPolicy, records: list[list[str]]) -> np.ndarray:
        """Log-probabilities ``(questions, records, length)`` of the recorded tokens."""
        table = policy.log_policy().detach().numpy()
        out = np.zeros((self.questions, self.records, self.length))
        for q, texts in enumerate(records):
            for i, text in enumerate(texts):
                path = path_of(text) or ()
                out[q, i] = [table[policy.tree.node([q, *path[:t]]), token] for t, token in enumerate(path)]
        return out

    def _measure(self, policy: TabularPolicy, answers: np.ndarray) -> dict[str, float]:
        p, tree = policy.log_policy().exp().detach().tolist(), policy.tree
        right, whole = 0.0, 0.0
        for q in range(self.questions):
            level: dict[Any, float] = {tree.node([q]): 1.0}
            every = 1.0
            node: Any = tree.node([q])
            for t in range(self.length):
                right += sum(mass * p[at][answers[q, t]] for at, mass in level.items())
                every *= p[node][answers[q, t]]
                node = int(tree.children[node, answers[q, t]])
                following: dict[Any, float] = {}
                for at, mass in level.items():
                    for token, child in enumerate(tree.children[at, : self.choices].tolist()):
                        if child > 0:
                            following[child] = mass * p[at][token]
                level = following
            whole += every
        return {"right": right / (self.questions * self.length), "whole": whole / self.questions}
