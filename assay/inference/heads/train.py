"""A head for the strategies that read the model's own states, from a model and its training tasks alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.engines.base import requests
from assay.errors import RunError, UsageError
from assay.inference.heads.fit import Fit, Head, Kind, known, measure
from assay.types import Ask, Group, Task

if TYPE_CHECKING:
    from assay.engines.base import Engine, Sampling
    from assay.engines.target import Target
    from assay.policies.causal_lm import CausalLM
    from assay.tasks.split import TrainStream
    from assay.verify.base import Verifier

LEAST = 8
"""Tasks, so that two or more are kept back and their spread is seen."""

PATIENCE = 20
"""Tasks of an endless source looked at for each one wanted, before it is said to repeat itself."""

RANGES = 8
"""Ranges of remaining length that a joint head tells apart, as many as its paper has."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A head, and what it was made from.

    Attributes:
        kind, head, fit: see :mod:`assay.inference.heads.fit`.
        tasks, responses: that it was trained on.
        left_out: sampled responses whose outcome is not known, all tasks together.
        model: that was tuned under the head, ``None`` where it was left alone.
        divergence: of it from the original on the responses kept back, see
            :meth:`~assay.inference.heads.joint_tuning.Original.divergence`, and of the original itself.
    """

    kind: Kind
    head: Head
    fit: Fit
    tasks: int
    responses: int
    left_out: int
    model: CausalLM | None = None
    divergence: tuple[float, float] | None = None


def train_head(
    target: Target,
    kind: Kind,
    *,
    tasks: int = 128,
    samples: int = 8,
    epochs: int | None = None,
    lr: float | None = None,
    tune: bool = False,
    tick: Callable[[int], None] = lambda done: None,
) -> Trained:
    """Sample from a model on its training tasks, judge the responses, and train a head on them.

    The responses are drawn as ``assay eval`` draws them. A quarter of the tasks is kept back for :class:`Fit`; the
    held-out tasks of the configuration, which strategies are compared on, are not touched.

    Args:
        target: see :func:`assay.engines.target.resolve`; its weights have to be here.
        kind: ``joint``: reward and remaining length, for ``adaptive`` (S038) and the scorer ``joint``; ``value``: the
            chance of a right answer, for S120 and the scorer ``value``.
        tasks: different ones, 8 or more; as many as there are where the source has fewer.
        samples: responses to each.
        epochs, lr: of the training; those of its class unless given.
        tune: train the model under a joint head too, see :class:`~assay.inference.heads.joint_tuning.JointTuning`.
        tick: told how many tasks have been answered.

    Raises:
        UsageError: an option out of range, an endpoint, or tasks that nothing can judge.
        RunError: all judged responses are alike, so that there is nothing to learn, or none was judged.
    """
    from assay.engines.base import Sampling
    from assay.engines.hf import HFEngine
    from assay.inference.heads.joint_tuning import Original
    from assay.randomness import Randomness
    from assay.tasks.configured import task_split
    from assay.verify.configured import make_verifier
    from assay.verify.isolate.pool import check_verifier

    if tasks < LEAST or samples < 1:
        raise UsageError(f"a head needs {LEAST} tasks or more and a sample of each, not {tasks} and {samples}")
    if tune and kind != "joint":
        raise UsageError("only a joint head has a model tuned under it; leave out tune")
    config = target.config
    fit = _trainer(kind, config.rollout.max_tokens, epochs, lr, tune)
    chosen = training_tasks(task_split(config)[0], tasks)
    if len(chosen) < LEAST:
        raise UsageError(f"the source has {len(chosen)} different training tasks; a head needs {LEAST} or more")
    with ExitStack() as stack:
        verifier = make_verifier(config)
        if callable(close := getattr(verifier, "close", None)):
            stack.callback(close)
        check_verifier(verifier, chosen)
        policy = target.load()
        rollout, measured = config.rollout, config.evaluate
        sampling = Sampling(rollout.max_tokens, measured.temperature, measured.top_p, stop=tuple(rollout.stop))
        random = Randomness(config.seed)
        rng = random.fresh("evaluate/head")
        engine = HFEngine(policy, rollout.max_rows)
        chunk = max(1, rollout.max_rows // samples)
        groups = _sampled(chosen, engine, verifier, samples, sampling, rng, chunk, tick)
    kept, fitted = groups[::4], [g for i, g in enumerate(groups) if i % 4]
    learnt = [row for g in fitted for row in known(g, kind)]
    if len({reward for _, reward, _ in learnt}) < 2:
        words = {True: "all right", False: "all wrong"}.get(learnt[0][2]) if learnt else "too few of them ended"
        raise RunError(
            f"{len(learnt)} of {samples * len(fitted)} responses could be judged, {words}: there is nothing for a head "
            "to tell apart; take more --tasks or --samples, or tasks of another difficulty"
        )
    original = Original(policy, [e for g in kept for e, _, _ in known(g, kind)]) if tune else None
    before = original.divergence(policy) if original is not None else 0.0
    head = fit(policy, fitted, random.fresh("evaluate/head/order"))
    left = samples * len(groups) - sum(len(known(g, kind)) for g in groups)
    made = Trained(kind, head, measure(head, policy, fitted, kept), len(fitted), len(learnt), left)
    if original is None:
        return made
    return replace(made, model=policy, divergence=(original.divergence(policy), before))


def training_tasks(stream: TrainStream, n: int) -> list[Task]:
    """Return ``n`` different tasks of a stream, or all that one epoch of it, or a long look at it, has."""
    from assay.tasks.split import content

    found: dict[bytes, Task] = {}
    for _ in range(PATIENCE * n if stream.source.size is None else stream.source.size):
        [task] = stream.next(1)
        found.setdefault(content(task), task)
        if len(found) == n or stream.epoch:
            break
    return list(found.values())


def length_edges(longest: int) -> tuple[int, ...]:
    """Return the edges of ranges of remaining tokens: 0, then doubling up to ``longest``, :data:`RANGES` at most.

    For 32,768 they are the paper's: 0, 256, 512, ... 32,768.
    """
    return (0, *sorted({-(-longest // 2**i) for i in range(RANGES)}))


def _trainer(kind: Kind, longest: int, epochs: int | None, lr: float | None, tune: bool) -> Callable[..., Head]:
    from assay.inference.heads.joint import Bins
    from assay.inference.heads.joint_training import JointTraining
    from assay.inference.heads.joint_tuning import JointTuning
    from assay.inference.heads.value_training import ValueTraining

    given = {k: v for k, v in (("epochs", epochs), ("lr", lr)) if v is not None}
    if tune:
        return JointTuning(Bins(7, length_edges(longest)), **given).fit  # type: ignore[arg-type]
    if kind == "joint":
        joint = JointTraining(Bins(7, length_edges(longest)), **given)  # type: ignore[arg-type]
        return lambda policy, groups, rng: joint.fit(policy, groups)
    return ValueTraining(**given).fit  # type: ignore[arg-type]


def _sampled(
    tasks: Sequence[Task],
    engine: Engine,
    verifier: Verifier,
    samples: int,
    sampling: Sampling,
    rng: np.random.Generator,
    chunk: int,
    tick: Callable[[int], None],
) -> list[Group]:
    """Return the judged responses to each task."""
    from assay.verify.episodes import judge_groups

    asked = requests(tasks, samples, sampling, rng)
    groups: list[Group] = []
    for start in range(0, len(tasks), chunk):
        here = slice(start, start + chunk)
        answers = engine.generate(asked[here])
        made = [Group(Ask(t, samples), tuple(a)) for t, a in zip(tasks[here], answers, strict=True)]
        groups += judge_groups(verifier, made)
        tick(len(groups))
    return groups
