"""A few gradient steps on each task's own samples, and the answer of the checkpoint that did best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.adapted import Adapted, adapted, trainable
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.sampling.surprisal import Rule, select
from assay.inference.scoring.base import mean_logprob
from assay.learning.optimizer import make_optimizer
from assay.learning.step import value
from assay.learning.update import update
from assay.method import Method
from assay.registry import part
from assay.signals.base import Models
from assay.statistics.sharpening import Step
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the policy gave after some gradient steps on a task.

    Attributes:
        episodes, verdicts: its samples.
        trained: tokens that the step to the next checkpoint learned from; 0 where none was taken.
    """

    episodes: tuple[Episode, ...]
    verdicts: tuple[Verdict, ...]
    trained: int = 0

    @property
    def worth(self) -> tuple[float, float]:
        """Mean score of the samples that could be judged, wrong ones counting 0, and the share of right ones."""
        known = [v for v in self.verdicts if v.passed is not None]
        if not known:
            return 0.0, 0.0
        return sum(v.score for v in known if v.passed) / len(known), sum(v.passed is True for v in known) / len(known)

    def step(self) -> Step | None:
        """Return the samples for :func:`assay.statistics.sharpening.sharpening`; ``None`` if none could be judged."""
        known = [(e.text, v.score) for e, v in zip(self.episodes, self.verdicts, strict=True) if v.passed is not None]
        return Step(tuple(t for t, _ in known), tuple(s for _, s in known)) if known else None


def best_of_adaptation(trajectory: Sequence[Checkpoint]) -> int:
    """Return the checkpoint of the largest :attr:`~Checkpoint.worth`, the earliest of equals.

    Its own samples say so, which costs nothing more: .494, .550, .456, .419 give 1.
    """
    return max(range(len(trajectory)), key=lambda i: (*trajectory[i].worth, -i))


@part("inference", "test_time_training")
@dataclass(frozen=True, slots=True)
class Adaptation:
    """Adapts the policy to each task by itself, samples from every checkpoint, and answers from the best of them.

        theta_0 = the policy;  sample y ~ pi_theta_s(. | x), judge;  theta_s+1 = theta_s - one step of Adam on GRPO's
        loss of these samples;  s* = argmax_s mean score;  the answer is the best right sample of theta_s*

    The budget's responses are shared evenly among theta_0 ... theta_steps; below two for each, fewer steps are taken.
    A step whose samples are all worth the same has no gradient and is left out: the next samples are then of the same
    weights. Tokens are those sampled and, ``price`` times, those learned from. Without a right sample there is no
    answer. Weights are as before after every task, however it ends. The trajectory is in ``meta["steps"]`` (see
    :class:`Checkpoint`), for :func:`assay.statistics.sharpening.sharpening`; ``meta["step"]`` is s*.

    Source: the baseline of surprisal-guided selection (arXiv 2602.07670) and its authors' code: 1 to 5 steps, groups of
    32, adapters of rank 16, a learning rate of 1e-5, and the choice of a checkpoint by its own samples. There several
    tasks are adapted to at once; here it is each by itself. Sharing the budget among the checkpoints is a choice.

    Args:
        sampling: how tokens are drawn.
        verifier: says which are right, and how good: anything :func:`assay.verify.make.make_verifier` takes; by
            default that of the task's kind.
        steps: gradient steps at most.
        lr: of Adam.
        rank: of the low-rank adapters that are trained, see :func:`assay.policies.borrowed.borrowed`; 0 trains all
            weights of a policy without adapters.
        rule: which of the best checkpoint's right samples is the answer, see
        :func:`~assay.inference.sampling.surprisal.select`.
        patience: stop once the mean score has fallen this many steps in a row; ``None`` never. 1 in the paper.
        price: what a token that is learned from costs, in sampled ones.
        token_budget: tokens of a pass.

    Raises:
        UsageError: an option out of range.
    """

    sampling: Sampling = field(default_factory=Sampling)
    verifier: Any = field(default_factory=KindVerifier)
    steps: int = 5
    lr: float = 1e-5
    rank: int = 16
    rule: Rule = "oracle"
    patience: int | None = None
    price: float = 1.0
    token_budget: int = 8192

    def __post_init__(self) -> None:
        object.__setattr__(self, "verifier", make_verifier(self.verifier))
        if self.rule not in get_args(Rule):
            raise UsageError(
                f"inference 'test_time_training': rule {self.rule!r} is none of {', '.join(get_args(Rule))}"
            )
        if min(self.steps, self.rank, self.price) < 0 or self.lr <= 0 or self.token_budget < 1:
            raise UsageError(
                "inference 'test_time_training': steps, rank and price must not be negative, lr above 0 and "
                "token_budget at least 1"
            )
        if self.patience is not None and self.patience < 1:
            raise UsageError("inference 'test_time_training': patience must be at least 1, or left out")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        """See :class:`assay.inference.base.Strategy`.

        Raises:
            UsageError: the engine has no weights here that could be trained.
        """
        policy = trainable("test_time_training", engine)
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        first = meter.sample([self._share(meter, i, self._checkpoints(meter)) for i in range(len(tasks))])
        seeds = rng.integers(2**63, size=(len(tasks), self.steps + 1))
        trajectories: list[list[Checkpoint]] = []
        with adapted(engine, policy, self.rank, rng, (self.lr, self.rank, self.token_budget)) as lent:
            for i, episodes in enumerate(first):
                with lent.to_a_task():
                    trajectories.append(self._adapt(meter, i, episodes, lent, seeds[i].tolist()))
        return [self._answer(meter, i, trajectory, rng) for i, trajectory in enumerate(trajectories)]

    def _checkpoints(self, meter: Meter) -> int:
        """Checkpoints that the budget is good for, with two responses from each."""
        whole = [] if meter.budget.samples is None else [meter.budget.samples]
        if meter.budget.tokens is not None:
            whole.append(int(meter.budget.tokens // (self.sampling.max_tokens * (1 + self.price))))
        return max(1, min(self.steps + 1, min(whole) // 2))

    def _share(self, meter: Meter, i: int, ahead: int) -> int:
        """Responses to begin now, so that ``ahead`` checkpoints, this one among them, get as many."""
        limits = []
        if meter.budget.samples is not None:
            limits.append(-(-(meter.budget.samples - meter.begun[i]) // ahead))
        if (left := meter.left(i)) is not None:
            limits.append(int(left // (self.sampling.max_tokens * (ahead + self.price * (ahead - 1)))))
        return meter.may(i, max(1, min(limits)))

    def _adapt(
        self, meter: Meter, i: int, episodes: Sequence[Episode], lent: Adapted, seeds: Sequence[int]
    ) -> list[Checkpoint]:
        """Take the steps on one task; the weights are changed and not put back."""
        out = [self._judged(meter.tasks[i], episodes)]
        optimizer = make_optimizer(lent.held.parameters, self.lr, (0.9, 0.999), 0.0)
        worse = 0
        for ahead in range(self._checkpoints(meter) - 1, 0, -1):
            batch, cost = self._valued(meter.tasks[i], out[-1], lent)
            left, fee = meter.left(i), math.ceil(cost * self.price)
            if left is not None and left < fee + self.sampling.max_tokens:
                break
            if cost:
                update(
                    lent.policy,
                    _GRPO.objective,
                    batch,
                    optimizer,
                    live=_GRPO.live,
                    temperature=self.sampling.temperature or 1.0,
                    token_budget=self.token_budget,
                )
                lent.learned(batch)
            out[-1] = Checkpoint(out[-1].episodes, out[-1].verdicts, cost)
            meter.spent[i] += fee
            n = self._share(meter, i, ahead)
            meter.begun[i] += n
            [found] = meter.generate([i], [Request(meter.tasks[i].prompt, n, self.sampling, lent.seed(seeds[ahead]))])
            out.append(self._judged(meter.tasks[i], found))
            worse = worse + 1 if out[-1].worth[0] < out[-2].worth[0] else 0
            if worse == self.patience:
                break
        return out

    def _judged(self, task: Task, episodes: Sequence[Episode]) -> Checkpoint:
        return Checkpoint(tuple(episodes), tuple(judge_episodes(self.verifier, [(task, e) for e in episodes])))

    def _valued(self, task: Task, here: Checkpoint, lent: Adapted) -> tuple[Batch, int]:
        """Return a checkpoint's samples with advantages, and how many tokens there are to learn from; 0 if nothing."""
        exact = all(p.dtype == torch.float64 for p in lent.held.parameters)
        group = Group(Ask(task, len(here.episodes)), here.episodes, here.verdicts)
        batch = value([group], _GRPO, Models(lent.policy), dtype=torch.float64 if exact else torch.float32)
        moves = bool((batch.advantages != 0).any())
        return batch, int(batch.mask[batch.active].sum()) if moves else 0

    def _answer(self, meter: Meter, i: int, trajectory: Sequence[Checkpoint], rng: np.random.Generator) -> Answer:
        chosen = best_of_adaptation(trajectory)
        best = trajectory[chosen]
        scores = [v.score for v in best.verdicts]
        right = [v.passed is True for v in best.verdicts]
        at = select([mean_logprob(e) for e in best.episodes], right, scores, self.rule, rng)
        verdicts = [v for c in trajectory for v in c.verdicts]
        return meter.answer(
            i,
            None if at is None else best.episodes[at].text,
            [e for c in trajectory for e in c.episodes],
            step=chosen,
            steps=tuple(trajectory),
            correct=sum(v.passed is True for v in verdicts),
            unscored=sum(v.passed is None for v in verdicts),
            score=None if at is None else scores[at],
            trained=sum(c.trained for c in trajectory),
        )


_GRPO = Method()
