"""Answers put together from phrases, some of them verbatim from a corpus, as long or as short as the policy likes."""

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
from assay.verify.none import NoVerifier

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Setting:
    """An answer says up to ``depth`` things in order, each in one of ``wordings``, of which one is that of the corpus.

    Token 0 ends the answer, the others are wordings of the next thing to say: ``words`` random words each, so that two
    wordings share nothing. The corpus is the reference of a task: its sentences in order. Probabilities at the start
    are softmax of normal logits, ``eager`` added to that of ending. There is no verifier.

    Args:
        tasks: questions, each asked equally often.
        depth, wordings, words: see above.
        spread: standard deviation of the logits at the start.
        eager: see above.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: fewer than two wordings.
    """

    tasks: int = 2
    depth: int = 5
    wordings: int = 3
    words: int = 8
    spread: float = 0.5
    eager: float = -1.0
    steps: int = 80
    prompts: int = 2
    group: int = 16
    lr: float = 0.1
    optimizer: Literal["sgd", "adam"] = "adam"

    def __post_init__(self) -> None:
        if self.wordings < 2:
            raise UsageError(f"setting 'phrases': wordings {self.wordings} must be at least 2")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks.

        ``quoted``: sentences of the corpus in an answer, expected; ``said``: things said at all; ``share``: the one
        over the other; ``.../start``; ``.../area``: means over training; ``rollouts``.
        """
        rng = np.random.default_rng([seed, 29])
        texts = [
            [[self.sentence(rng) for _ in range(self.wordings)] for _ in range(self.depth)] for _ in range(self.tasks)
        ]
        own = rng.integers(self.wordings, size=(self.tasks, self.depth)).tolist()

        def node(k: int) -> list[Any]:
            return [0.0, *(node(k + 1) if k + 1 < self.depth else 0.0 for _ in range(self.wordings))]

        tree = Tree.of([node(0) for _ in range(self.tasks)])
        logits = self.spread * rng.standard_normal(tree.children.shape)
        logits[1:, 0] += self.eager
        policy = TabularPolicy(tree, torch.from_numpy(logits))
        first = np.array([path[0] for path in tree.paths])
        things = np.array([sum(token > 0 for token in path[1:]) for path in tree.paths])
        verbatim = np.array([sum(t == own[p[0]][k] + 1 for k, t in enumerate(p[1:])) for p in tree.paths])

        def measure() -> dict[str, float]:
            with torch.no_grad():
                p = policy.leaf_logprobs().exp().numpy()
            p = p / (np.bincount(first, p)[first] * self.tasks)
            said, quoted = float(p @ things), float(p @ verbatim)
            return {"quoted": quoted, "said": said, "share": quoted / max(said, 1e-9)}

        before, curve = measure(), list[dict[str, float]]()
        tasks = [
            Task(str(i), str(i), [" ".join(texts[i][k][own[i][k]] for k in range(self.depth))], kind="none")
            for i in range(self.tasks)
        ]
        engine = Writing(policy, texts)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        train(policy, tasks, NoVerifier(), arm, training, seed, lambda *_: curve.append(measure()), engine)
        return {
            **measure(),
            **{f"{k}/start": v for k, v in before.items()},
            **{f"{k}/area": float(np.mean([now[k] for now in curve])) for k in before},
            "rollouts": engine.sampled,
        }

    def sentence(self, rng: np.random.Generator) -> str:
        """Return random words."""
        sizes = rng.integers(3, 9, self.words)
        return " ".join("".join(rng.choice(list(LETTERS), size)) for size in sizes) + "."


class Writing(Counting):
    """An engine whose episodes read as the phrases of their task."""

    def __init__(self, policy: TabularPolicy, texts: Sequence[Sequence[Sequence[str]]]):
        super().__init__(policy)
        self.texts = texts

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        found = zip(requests, super().generate(requests), strict=True)
        return [[replace(e, text=self.written(int(str(r.prompt)), e.tokens)) for e in row] for r, row in found]

    def written(self, task: int, tokens: Sequence[int] | np.ndarray) -> str:
        """Return the text of an answer."""
        return " ".join(self.texts[task][k][t - 1] for k, t in enumerate(tokens) if t > 0)
