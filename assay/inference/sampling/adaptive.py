"""Sampling that is steered while it goes on: what to continue, to branch, to begin and to pause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.heads.joint import JointHead, Table, choose
from assay.inference.meter import Meter
from assay.inference.search.stepping import Stepping
from assay.registry import part
from assay.types import Episode, Task


@dataclass(slots=True)
class _State:
    """What there is of one task: beginnings and whole responses, with their tables."""

    live: list[tuple[Episode, Table]] = field(default_factory=list)
    done: list[tuple[Episode, Table]] = field(default_factory=list)
    closed: bool = False


def _start(engine: Engine, task: Task) -> Episode:
    """Return an episode of no tokens: the prompt alone."""
    none = np.zeros(0, dtype=np.int64)
    return Episode(engine.encode(task.prompt), none, none.astype(bool), None, "", "length")


@part("inference", "adaptive")
@dataclass(frozen=True, slots=True)
class Adaptive:
    """Every ``every`` tokens, goes on with the set of beginnings whose utility is largest; the others wait.

        U(A) = E[max_i V_i] - beta (a E[sum_i L_i] + (1 - a) E[max_i L_i])

    V_i and L_i, reward and remaining length of beginning i, are read off a head on the model's own states, at no cost
    in tokens, and taken as independent. A fresh start is one of the beginnings, and so is what waits, which may be gone
    on with later; each may be in A up to ``copies`` times, which branches it; whole responses count for their V. A
    grows by the best addition as long as U grows. Where nothing is worth continuing, the answer is the whole response
    with the largest expected reward.

    Source: ZIP-RC (arXiv 2512.01457); the greedy choice of A is ours.

    Args:
        head: a :class:`~assay.inference.heads.joint.JointHead`, or the file of one.
        sampling: how tokens are drawn.
        beta: what a token is worth in reward.
        a: share of the cost that is of compute, the rest of waiting.
        every: tokens between decisions.
        copies: see above.
        width: beginnings that go on at a time; the budget's samples bound how many are ever begun.

    Raises:
        UsageError: an option out of range.
    """

    head: Any
    sampling: Sampling = field(default_factory=Sampling)
    beta: float = 1e-4
    a: float = 1.0
    every: int = 64
    copies: int = 2
    width: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.head, JointHead):
            object.__setattr__(self, "head", JointHead.load(self.head))
        if self.beta < 0 or not 0 <= self.a <= 1 or min(self.every, self.copies, self.width) < 1:
            raise UsageError(
                "inference 'adaptive': needs beta of at least 0, a in [0, 1], every, copies and width of at least 1"
            )

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        policy = getattr(engine, "policy", None)
        if policy is None:
            raise UsageError("inference 'adaptive' reads the policy itself, which this engine does not give")
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        stepping = Stepping((), self.every)
        found = [_State() for _ in tasks]
        starts = self.head.tables(policy, [_start(engine, t) for t in tasks])
        while True:
            rows: list[int] = []
            heads: list[Episode | None] = []
            counts: list[int] = []
            for i, state in enumerate(found):
                if state.closed:
                    continue
                plan = self._plan(meter, i, state, starts[i])
                rows += [i] * len(plan)
                heads += [head for head, _ in plan]
                counts += [n for _, n in plan]
                state.closed = not plan
            if not rows:
                break
            grown = stepping.extend(meter, rows, heads, counts, whole=False)
            each = [i for i, many in zip(rows, grown, strict=True) for _ in many]
            episodes = [e for many in grown for e in many]
            for i, e, table in zip(each, episodes, self.head.tables(policy, episodes), strict=True):
                ended = stepping.done(e, self.sampling)
                (found[i].done if ended else found[i].live).append((e, table))
        out = []
        values = self.head.bins.values
        for i, state in enumerate(found):
            pool = state.done or state.live  # without a whole response, tokens have run out
            worth = [float(t.sum(1) @ values) for _, t in pool]
            episode = pool[int(np.argmax(worth))][0]
            out.append(meter.answer(i, episode.text, [e for e, _ in pool], worth=worth, begun=meter.begun[i]))
        return out

    def _plan(self, meter: Meter, i: int, state: _State, start: Table) -> list[tuple[Episode | None, int]]:
        """Return what to continue and how often, taken out of what waits; ``None`` is the prompt alone."""
        options: list[Episode | None] = [e for e, _ in state.live]
        tables = [t for _, t in state.live]
        samples = meter.budget.samples
        more = self.width if samples is None else samples - meter.begun[i]
        if more > 0:
            options.append(None)
            tables.append(start)
        # A continuation of each beginning is paid for already; branches and fresh starts are new samples.
        most = min(self.width, len(state.live) + more)
        if (left := meter.left(i)) is not None:
            # Each that goes on may go on to its end.
            most = min(most, left // self.sampling.max_tokens)
            if not meter.begun[i]:
                most = max(most, 1)
            elif not state.done:
                longest = min((len(e.tokens) for e, _ in state.live), default=0)
                most = max(most, int(left >= self.sampling.max_tokens - longest and bool(state.live)))
        least = 0 if state.done else 1
        done = [t for _, t in state.done]
        bounds = {"most": most, "copies": self.copies, "least": least, "begun": len(state.live), "new": more}
        chosen = choose(tables, done, self.head.bins, self.beta, self.a, **bounds)
        state.live = [waits for k, waits in enumerate(state.live) if k not in chosen]
        meter.begun[i] += len(chosen) - len({k for k in chosen if options[k] is not None})
        return [(options[k], chosen.count(k)) for k in dict.fromkeys(chosen)]
