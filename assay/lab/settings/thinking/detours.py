"""Responses that take one of several ways and may lose it: some are seen early to lead nowhere, some are long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.inference.heads.joint import Bins, ByJointHead
from assay.inference.heads.joint_training import JointTraining
from assay.inference.named import make_strategy
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Group, Task
from assay.verify.episodes import judge_groups


@dataclass(frozen=True, slots=True)
class Setting:
    """The first token takes a way, of its own length and chance; every further one may leave it, for good.

    A response that is still on its way at the end is right. Whether it is shows in the state, so that a head trained on
    ``solutions`` responses to each problem can tell; it has to learn how long ways are and how often they are left.
    An arm is a strategy with its options; the head is its own, or its scorer.

    Args:
        problems: with chances from Beta(a, b) each.
        a, b: of the Beta distribution.
        ways: from a prompt.
        shortest, longest: tokens of a way.
        solutions: to learn from, of each problem.
        repeats: times that each problem is answered.
        samples: budget of an answer; an arm may have its own.
    """

    problems: int = 6
    a: float = 1.0
    b: float = 2.0
    ways: int = 3
    shortest: int = 3
    longest: int = 10
    solutions: int = 100
    repeats: int = 15
    samples: int = 16

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy`` and mean ``tokens`` of answers, and ``above``: accuracy above best-of-n at these tokens.

        The curve of best-of-n, by the same head, runs through n = 1, 2, 4, 8 and 16, straight in the logarithm of
        tokens between them.
        """
        policy = self.policy(seed)
        engine, verifier = TabularEngine(policy), TabularVerifier(policy.tree)
        sampling = Sampling(self.longest + 1)
        problems = [Task(str(i), str(i)) for i in range(self.problems)]
        rng = np.random.default_rng([seed, 9])
        asked = [Request(t.prompt, self.solutions, sampling, int(rng.integers(2**63))) for t in problems]
        groups = [
            Group(Ask(t, self.solutions), tuple(e)) for t, e in zip(problems, engine.generate(asked), strict=True)
        ]
        bins = Bins(7, tuple(range(self.longest + 3)))
        head = JointTraining(bins, epochs=100, lr=0.2).fit(policy, judge_groups(verifier, groups))
        tasks = [Task(f"{t.id}/{k}", t.prompt) for t in problems for k in range(self.repeats)]

        def answered(options: Mapping[str, Any], samples: int) -> tuple[float, float]:
            strategy = make_strategy({**options, "sampling": sampling})
            found = strategy(tasks, engine, samples, np.random.default_rng([seed, 11]))
            right = [verifier(t, a.text or "").passed is True for t, a in zip(tasks, found, strict=True)]
            return float(np.mean(right)), float(np.mean([a.tokens for a in found]))

        plain = {"name": "best_of_n", "scorer": ByJointHead(head)}
        curve = [answered(plain, n) for n in (1, 2, 4, 8, 16)]
        options = dict(arm)
        samples = int(options.pop("samples", self.samples))
        options |= {"head": head} if options["name"] == "adaptive" else {"scorer": ByJointHead(head)}
        accuracy, tokens = answered(options, samples)
        at = np.interp(np.log(tokens), [np.log(t) for _, t in curve], [a for a, _ in curve])
        return {"accuracy": accuracy, "tokens": tokens, "above": accuracy - float(at)}

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy, over one tree that has the problems side by side."""
        rng = np.random.default_rng([seed, 7])

        def lost(left: int) -> Any:
            return 0.0 if left == 0 else [lost(left - 1)]

        def way(left: int) -> Any:
            return 1.0 if left == 0 else [way(left - 1), lost(left - 1)]

        lengths = rng.integers(self.shortest, self.longest + 1, (self.problems, self.ways))
        chances = rng.beta(self.a, self.b, (self.problems, self.ways)).clip(1e-3, 1 - 1e-3)
        tree = Tree.of([[way(int(n)) for n in row] for row in lengths])
        logits = torch.zeros(tree.children.shape, dtype=torch.float64)
        for i, j in np.ndindex(lengths.shape):
            stay = chances[i, j] ** (1 / lengths[i, j])
            for k in range(int(lengths[i, j])):
                node = tree.node([i, j, *[0] * k])
                assert node is not None
                logits[node, 0] = float(np.log(stay / (1 - stay)))
        return TabularPolicy(tree, logits)
