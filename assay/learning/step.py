"""The two halves of an RL step, from left to right along the seams: sample a valued batch, learn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Engine
from assay.learning.beside import judged_beside
from assay.learning.signals import compute_signals
from assay.learning.update import Averages, mini_batches
from assay.method import Method
from assay.rollout.base import Rollout
from assay.signals.base import Models
from assay.types import Ask, Group
from assay.verify.base import Verifier
from assay.verify.episodes import judge_groups

Clock = Callable[[str], AbstractContextManager[None]]


def sample(
    asks: Sequence[Ask],
    rollout: Rollout,
    engine: Engine,
    verifier: Verifier,
    method: Method,
    models: Models,
    rng: np.random.Generator,
    clock: Clock = lambda _: nullcontext(),
    dtype: torch.dtype = torch.float32,
    more: Callable[[], Sequence[Ask]] | None = None,
    parts: int = 1,
) -> tuple[list[Group], Batch]:
    """Generate, verify and value: return the judged groups, and a batch with rewards, weights and advantages.

    The batch is of all groups; but of a selection with ``rounds`` above 1, of those whose samples its ``keep(batch)``
    does not leave out: further asks replace the others, for as many rounds in all, and what is kept beyond the number
    of the first asks is dropped. Kept groups of several rounds are given their signals and rewards anew, together. If
    none is kept the batch is that of the first round, of which the selection leaves out every sample. Groups that a
    rollout derived from judged ones fill no place of an ask, and stay if the selection keeps them.

    Args:
        asks: what to ask.
        rollout, engine, verifier, method: how.
        models: what signals may run.
        rng: every draw of the rollout comes from it.
        clock: told what is being timed.
        dtype: of the batch.
        more: gives the asks of a further round; without it there is none.
        parts: pieces that a round is generated in, each judged while the next is generated.
    """

    def collect(asks: Sequence[Ask]) -> list[Group]:
        if parts > 1 or hasattr(verifier, "map"):  # a pool judges in processes of its own
            return judged_beside(
                asks, parts, lambda part: rollout.collect(part, engine, rng), partial(judge_groups, verifier), clock
            )
        with clock("generate"):
            groups = rollout.collect(asks, engine, rng)
        with clock("verify"):
            return judge_groups(verifier, groups)

    rewarded = partial(_rewarded, method=method, models=models, clock=clock, dtype=dtype)
    groups = collect(asks)
    batch = rewarded(groups)
    rounds = getattr(method.select, "rounds", 1) if more is not None else 1
    if rounds > 1 and len(batch):
        kept = _kept(method.select, groups, batch)
        first = len(groups)
        whole = len(kept) == first
        while sum(not g.derived for g in kept) < len(asks) and rounds > 1 and more is not None:
            found, rounds = collect(more()), rounds - 1
            groups = groups + found
            kept += _kept(method.select, found, rewarded(found))
        if kept and (not whole or len(kept) > first):
            asked = [group for group in kept if not group.derived]
            batch = rewarded([*asked[: len(asks)], *(group for group in kept if group.derived)])
    return groups, _compared(batch, method, clock)


def value(
    groups: Sequence[Group],
    method: Method,
    models: Models,
    clock: Clock = lambda _: nullcontext(),
    dtype: torch.dtype = torch.float32,
) -> Batch:
    """Value judged groups: return a batch with rewards, weights and advantages. Arguments as for :func:`sample`."""
    return _compared(_rewarded(groups, method, models, clock, dtype), method, clock)


def _rewarded(groups: Sequence[Group], method: Method, models: Models, clock: Clock, dtype: torch.dtype) -> Batch:
    """A batch of judged groups with signals and rewards."""
    batch = Batch.from_groups(groups, dtype)
    batch.answer = models.answer
    if len(batch):
        with clock("signals"):
            compute_signals(batch, method.needs, models)
        with clock("value"):
            method.worth(batch)
    return batch


def _compared(batch: Batch, method: Method, clock: Clock) -> Batch:
    """The batch with weights and advantages."""
    if len(batch):
        with clock("value"):
            method.compare(batch)
    return batch


def _kept(select: Any, groups: list[Group], batch: Batch) -> list[Group]:
    """Return the groups of which a selection keeps a sample."""
    if not len(batch):
        return []
    chosen = set(batch.prompt_group[select.keep(batch)].tolist())
    return [group for i, group in enumerate(groups) if i in chosen]


def learn(
    batch: Batch,
    method: Method,
    models: Models,
    rng: np.random.Generator,
    apply: Callable[[Any, Batch], dict[str, float]],
    epochs: int = 1,
    parts: int = 1,
) -> dict[str, float]:
    """Update from a valued batch: the policy by mini-batches, then from what the selection replays, then the learners.

    Learners with ``turn = "before"`` come first, and the policy learns from what they say then.

    Args:
        batch: valued.
        method: its objective is minimised; ``select.replay`` and the learners have their turn.
        models: what learners may run.
        rng: orders the mini-batches.
        apply: one optimiser step on an objective and a mini-batch; returns metrics.
        epochs: passes over the batch.
        parts: mini-batches per pass, each of whole groups.
    """
    averages = Averages()
    early = method.early
    first = reread(batch, method, models) if early else {}
    groups = batch.prompt_group.unique()
    for _ in range(epochs):
        order = groups[torch.from_numpy(rng.permutation(len(groups)))]
        for part in mini_batches(batch, parts, order):
            averages.add(apply(method.objective, part))
    metrics = first | averages.means()
    replay = getattr(method.select, "replay", None)
    if replay is not None:
        again = Averages()
        for old in replay(batch, rng):
            old.totals = old.count()
            # Samples that were kept without what the objective has a signal for are read by it now.
            wanted = [n for n in getattr(method.objective, "needs", ()) if not isinstance(n, str)]
            compute_signals(old, [n for n in wanted if n.name not in old.signals], models)
            again.add({f"replay/{k}": v for k, v in apply(method.objective, old).items()})
        metrics |= again.means()
    with models.together():
        for learner in method.learners:
            if learner not in early:
                metrics |= learner.learn(batch, models)
    return metrics


def reread(batch: Batch, method: Method, models: Models) -> dict[str, float]:
    """Let the learners that come before the policy learn, and value the batch by what their signals say then."""
    metrics: dict[str, float] = {}
    with models.together():
        for learner in method.early:
            metrics |= learner.learn(batch, models)
    signals = [n for n in method.needs if not isinstance(n, str) and n in method.early]
    compute_signals(batch, signals, models)
    method.revalue(batch, [s.name for s in signals])
    return metrics
