"""Texts to go on with, sentence by sentence, by a policy that tends to write more than one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Task
from assay.verify.text.continuation import CLOSE, OPEN, Continuation


@dataclass(frozen=True, slots=True)
class Setting:
    """Each of ``texts`` texts goes on with ``longest`` true sentences out of ``sentences``.

    A response writes one sentence to ``longest`` and then stops. The logits of sentences begin normal with deviation
    ``spread``, those of stopping lower by ``long``. Verdicts are those of verifier ``continuation`` on texts that read
    so.

    Args:
        texts, sentences, longest, spread, long: see above.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: fewer than two sentences, or responses of less than one.
    """

    texts: int = 4
    sentences: int = 4
    longest: int = 3
    spread: float = 1.0
    long: float = 2.0
    steps: int = 100
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if self.sentences < 2 or self.longest < 1:
            raise UsageError("setting 'continuations' needs two sentences or more, and responses of one or more")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over texts: ``first``: probability that the first sentence
        is the true one; ``area``: its mean over training; ``start``; ``beginning``: that all are; ``sentences``: their
        expected number; ``rollouts``."""
        rng = np.random.default_rng([seed, 166])
        truth = rng.integers(self.sentences, size=(self.texts, self.longest))
        tree = Tree.of([self.nested(0) for _ in range(self.texts)])
        logits = self.spread * rng.standard_normal(tuple(tree.children.shape))
        # A token below ``sentences`` writes that sentence, the next one stops, which the first may not.
        written = [[t for t in path[1:] if t < self.sentences] for path in tree.paths]
        inner = {tree.node(path[:depth]) for path in tree.paths for depth in range(2, len(path))}
        logits[sorted(node for node in inner if node is not None), self.sentences] -= self.long
        policy = TabularPolicy(tree, torch.from_numpy(logits))
        which = np.array([path[0] for path in tree.paths])
        true = truth[which]
        first = np.array([w[0] == row[0] for w, row in zip(written, true, strict=True)])
        whole = np.array([w == row[: len(w)].tolist() for w, row in zip(written, true, strict=True)])
        lengths = np.array([len(w) for w in written])

        def measure() -> dict[str, float]:
            p = policy.leaf_logprobs().detach().exp().numpy()
            p = p / np.bincount(which, p)[which] / self.texts
            return {"first": float(p @ first), "beginning": float(p @ whole), "sentences": float(p @ lengths)}

        tasks = [
            Task(str(i), str(i), reference=[sentence(t) for t in row], kind="continuation")
            for i, row in enumerate(truth.tolist())
        ]
        start, curve, engine = measure()["first"], list[float](), Writing(policy, self.sentences)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, Continuation(), arm, training, seed, lambda *_: curve.append(measure()["first"]), engine)
        return {**measure(), "area": float(np.mean(curve)), "start": start, "rollouts": engine.sampled}

    def nested(self, written: int) -> Any:
        """Return what may follow ``written`` sentences as nested lists."""
        if written == self.longest:
            return 0.0
        return [self.nested(written + 1) for _ in range(self.sentences)] + [0.0] * (written > 0)


def sentence(number: int) -> str:
    """Return a sentence of a text."""
    return f"Then number {number} is what happens."


class Writing(Counting):
    """An engine whose episodes read as predictions."""

    def __init__(self, policy: TabularPolicy, sentences: int):
        super().__init__(policy)
        self.sentences = sentences

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, text=self.written(e.tokens)) for e in row] for row in super().generate(requests)]

    def written(self, tokens: np.ndarray) -> str:
        """Return the text that tokens write."""
        return OPEN + " ".join(sentence(t) for t in tokens.tolist() if t < self.sentences) + CLOSE
