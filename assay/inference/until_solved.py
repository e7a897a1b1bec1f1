"""A hard task by itself: attempts, a step that learns from them, and so on until one is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.adapted import Adapted, adapted, trainable
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.learning.optimizer import make_optimizer
from assay.learning.signals import wants_reference
from assay.learning.step import learn, value
from assay.learning.update import update
from assay.method import Method, make_method
from assay.registry import part
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier


@part("inference", "until_solved")
@dataclass(frozen=True, slots=True)
class UntilSolved:
    """Attempts at a task in batches of ``group``; a batch without a right one is learned from, by one step of a method.

    The first right attempt is the answer; ``meta["attempts"]`` is its number, from 1, in the order they were made in,
    and ``meta["steps"]`` how many steps were taken before. Where the budget is spent without one there is no answer,
    and ``attempts`` is ``None``. Weights, and all that the method learns beside them, begin anew with every task and
    are afterwards as before. Tokens are those sampled.

    At equal budgets ``best_of_n`` with the verifier as its scorer is what to compare it with: as many attempts without
    learning.

    Source: SDPO (arXiv 2601.20802), test-time self-distillation of single hard questions; its method is S031.

    Args:
        sampling: how tokens are drawn.
        method: what is learned by: a paper's id, a ``[method]`` table, or a method, whose rollout and curriculum are
            left out.
        verifier: says which are right, and what of the others: anything :func:`assay.verify.make.make_verifier` takes;
            by default that of the task's kind.
        group: attempts between steps.
        lr: of Adam.
        rank: of the low-rank adapters that are trained, see :func:`assay.policies.borrowed.borrowed`; 0 trains all
            weights of a policy without adapters.
        token_budget: tokens of a pass.

    Raises:
        UsageError: an option out of range.
    """

    sampling: Sampling = field(default_factory=Sampling)
    method: Any = "S031"
    verifier: Any = field(default_factory=KindVerifier)
    group: int = 8
    lr: float = 1e-5
    rank: int = 16
    token_budget: int = 8192
    _said: str = field(default="", init=False, repr=False, compare=False)
    """The method as it was given, which tells the steps of two methods apart."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "verifier", make_verifier(self.verifier))
        if min(self.group, self.token_budget) < 1 or self.rank < 0 or self.lr <= 0:
            raise UsageError(
                f"inference 'until_solved': group {self.group} and token_budget {self.token_budget} must be at least "
                f"1, rank {self.rank} at least 0 and lr {self.lr:g} above 0"
            )
        method = make_method(**self.method) if isinstance(self.method, Mapping) else make_method(self.method)
        parts = {name: type(part).__name__ for name, part in method.parts.items()}
        object.__setattr__(self, "_said", repr(parts if isinstance(self.method, Method) else self.method))
        object.__setattr__(self, "method", method)

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        """See :class:`assay.inference.base.Strategy`.

        Raises:
            UsageError: the engine has no weights here that could be trained.
        """
        policy = trainable("until_solved", engine)
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        answers = []
        how = (self._said, self.lr, self.rank, self.token_budget)
        with adapted(engine, policy, self.rank, rng, how) as lent:
            for i in range(len(tasks)):
                with lent.to_a_task():
                    answers.append(self._solve(meter, i, lent, rng))
        return answers

    def _solve(self, meter: Meter, i: int, lent: Adapted, rng: np.random.Generator) -> Answer:
        """Try a task to the end; the weights are changed and not put back."""
        task, made, steps = meter.tasks[i], list[Episode](), 0
        learning = None
        while n := meter.may(i, self.group):
            sampling = meter.shortened(i)
            meter.begun[i] += n
            seed = lent.seed(int(rng.integers(2**63)))
            [found] = meter.generate([i], [Request(task.prompt, n, sampling, seed)])
            verdicts = judge_episodes(self.verifier, [(task, episode) for episode in found])
            made += found
            right = next((k for k, verdict in enumerate(verdicts) if verdict.passed), None)
            if right is not None:
                number = len(made) - len(found) + right + 1
                return meter.answer(i, found[right].text, made, attempts=number, steps=steps)
            if meter.may(i, 1):
                learning = learning or _Learning(self, lent)
                learning.step(Group(Ask(task, n), tuple(found), tuple(verdicts)))
                steps += 1
        return meter.answer(i, None, made, attempts=None, steps=steps)


class _Learning:
    """A method with its learners and an optimiser, for one task."""

    def __init__(self, strategy: UntilSolved, lent: Adapted):
        self.method, self.lent = strategy.method, lent
        policy, engine = lent.policy, lent.engine
        reference = policy.twin() if wants_reference(self.method.needs) else None
        self.models = Models(
            policy,
            reference,
            strategy.sampling.temperature or 1.0,
            strategy.token_budget,
            encode=engine.encode,
            engine=engine,
            lr=strategy.lr,
        )
        for learner in self.method.learners:
            learner.start(self.models)
        optimizer = make_optimizer(lent.held.parameters, strategy.lr, (0.9, 0.999), 0.0)
        self.apply = partial(self._apply, optimizer)
        exact = all(p.dtype == torch.float64 for p in lent.held.parameters)
        self.dtype = torch.float64 if exact else torch.float32

    def step(self, group: Group) -> None:
        """Learn from judged attempts."""
        batch = value([group], self.method, self.models, dtype=self.dtype)
        if len(batch):
            learn(batch, self.method, self.models, self.models.rng, self.apply)
            self.lent.learned(batch)

    def _apply(self, optimizer: Any, objective: Any, batch: Any) -> dict[str, float]:
        models = self.models
        return update(
            self.lent.policy,
            objective,
            batch,
            optimizer,
            live=self.method.live,
            temperature=models.temperature,
            token_budget=models.token_budget,
        )[0]
