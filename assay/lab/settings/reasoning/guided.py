"""Strategies that search by learned values, on trees whose right leaves are planted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.inference.heads.value_head import ByValueHead
from assay.inference.heads.value_training import ValueTraining
from assay.inference.named import make_strategy
from assay.inference.scoring.implicit import ByImplicitReward
from assay.inference.scoring.scorers import Reduce
from assay.lab.settings.tree import Setting as Tree
from assay.learning.signals import compute_signals
from assay.learning.update import update
from assay.method import make_method
from assay.policies.tabular import TabularPolicy
from assay.rewards.process.implicit_prm import ImplicitPRM
from assay.signals.base import Models
from assay.signals.steps import Steps
from assay.types import Ask, Group, Task
from assay.verify.episodes import judge_groups


@dataclass(frozen=True, slots=True)
class Setting:
    """A value model learns from sampled solutions to each of ``problems`` trees; a strategy then answers them anew.

    An arm is a strategy with its options. ``values`` among them says how the value model is trained, ``implicit`` how a
    model of implicit rewards is, by which ``method``; it is then the strategy's scorer. The policy is
    random and does not change; right leaves lie at random under one first token.

    Args:
        problems: trees.
        branching, depth, right, hard: of a tree, see :class:`assay.lab.settings.tree.Setting`.
        solutions: sampled for each, to learn from.
        repeats: times that each is answered.
        samples: the budget of an answer.
    """

    problems: int = 4
    branching: int = 4
    depth: int = 4
    right: int = 10
    hard: float = 0.5
    solutions: int = 100
    repeats: int = 50
    samples: int = 4

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy`` over problems and repeats, ``tokens`` of an answer, ``single`` of one response, exact."""
        rng = np.random.default_rng([seed, 7])
        shape = Tree(
            tasks=self.problems,
            branching=self.branching,
            depth=self.depth,
            right=self.right,
            clustered=True,
            hard=self.hard,
        )
        policy, correct = shape.world(rng)
        engine, verifier = TabularEngine(policy), TabularVerifier(policy.tree)
        sampling = Sampling(self.depth)
        problems = [Task(str(i), str(i)) for i in range(self.problems)]
        options = dict(arm)
        values, implicit = options.pop("values", None), options.pop("implicit", None)
        if values is not None or implicit is not None:
            seeds = rng.integers(2**63, size=self.problems)
            asked = [Request(t.prompt, self.solutions, sampling, int(s)) for t, s in zip(problems, seeds, strict=True)]
            sampled = engine.generate(asked)
            groups = [Group(Ask(t, self.solutions), tuple(e)) for t, e in zip(problems, sampled, strict=True)]
            judged = judge_groups(verifier, groups)
            if values is not None:
                options["scorer"] = ByValueHead(ValueTraining(**values).fit(policy, judged, rng))
            else:
                options["scorer"] = taught(policy, judged, **implicit)
        strategy = make_strategy({**options, "sampling": sampling})
        tasks = [Task(f"{t.id}/{k}", t.prompt) for t in problems for k in range(self.repeats)]
        answers = strategy(tasks, engine, self.samples, np.random.default_rng([seed, 11]))
        right = [verifier(t, a.text or "").passed is True for t, a in zip(tasks, answers, strict=True)]
        return {
            "accuracy": float(np.mean(right)),
            "tokens": float(np.mean([a.tokens for a in answers])),
            "single": float(shape.chances(policy, correct).mean()),
        }


def taught(
    policy: TabularPolicy,
    groups: Sequence[Group],
    method: Mapping[str, Any],
    epochs: int,
    lr: float,
    reduce: Reduce = "min",
) -> ByImplicitReward:
    """Return the scorer that a copy of the policy is once a ``[method]`` has taught it from judged responses."""
    made, phi = make_method(**method), policy.twin()
    batch = Batch.from_groups(groups, policy.logits.dtype)
    compute_signals(batch, made.needs, Models(phi, policy))
    made.value(batch)
    optimizer = torch.optim.Adam(phi.module.parameters(), lr=lr)
    for _ in range(epochs):
        update(phi, made.objective, batch, optimizer, max_grad_norm=math.inf)
    return ByImplicitReward(ImplicitPRM(phi, policy, made.objective.beta), by=Steps("fixed", 1), reduce=reduce)  # type: ignore[attr-defined]
