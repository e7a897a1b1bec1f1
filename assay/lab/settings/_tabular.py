"""What settings with a tabular policy share: the trainer's own step, in memory, on a policy whose values are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from assay.curriculum.base import unaided
from assay.curriculum.pass_rates import PassRates
from assay.engines.base import Engine, Sampling
from assay.engines.tabular import TabularEngine
from assay.learning.signals import check_signals, wants_reference
from assay.learning.step import learn, sample
from assay.learning.survey import look
from assay.learning.update import update
from assay.method import make_method
from assay.randomness import Randomness
from assay.registry import build
from assay.signals.base import Models
from assay.tasks.listed import Listed
from assay.tasks.split import split
from assay.types import Task
from assay.verify.base import Locates, Verifier
from assay.verify.episodes import judge_groups


@dataclass(frozen=True, slots=True)
class Training:
    """How a tabular policy is trained.

    Attributes:
        steps: RL steps.
        prompts, group: tasks per step and responses per task.
        lr: learning rate.
        optimizer: ``sgd`` without momentum, or ``adam``.
        epochs, mini_batches: passes over a step's batch, and optimiser steps per pass.
        temperature: of sampling.
        max_tokens: longest response.
    """

    steps: int
    prompts: int
    group: int
    lr: float
    optimizer: Literal["sgd", "adam"] = "sgd"
    epochs: int = 1
    mini_batches: int = 1
    temperature: float = 1.0
    max_tokens: int = 64


class Spent(Exception):
    """Raised by what watches a training: the rollouts are used up."""


def train(
    policy: Any,
    tasks: Sequence[Task],
    verifier: Verifier,
    method: Mapping[str, Any],
    training: Training,
    seed: int,
    watch: Callable[[int, Any, Mapping[str, float]], None] = lambda step, batch, metrics: None,
    engine: Engine | None = None,
) -> None:
    """Train ``policy`` in place by the steps that :class:`assay.training.loop.Trainer` takes, in its own precision.

    Args:
        policy: tabular, or any other whose engine is given.
        tasks: asked in turn.
        verifier: judges them.
        method: a ``[method]`` table.
        training: how.
        seed: of every draw.
        watch: called after each step with its number, its batch and its metrics.
        engine: samples from the policy; tabular if left out.
    """
    random = Randomness(seed)
    made = make_method(**dict(method))
    engine = TabularEngine(policy) if engine is None else engine
    reference = policy.twin() if wants_reference(made.needs) else None
    if reference is not None:
        reference.module.requires_grad_(False)
    check_signals(made.needs, made.live, policy)
    stream, _ = split(Listed(tasks), 0.0, 0, seed)
    size, history = {"prompts": training.prompts, "group": training.group}, PassRates()
    curriculum = build("curriculum", made.curriculum, stream=stream, select=made.select, history=history, **size)
    now = 0

    def answering(spec: Any) -> Any:
        return build(
            "rollout",
            spec,
            sampling=Sampling(training.max_tokens, training.temperature),
            judge=partial(judge_groups, verifier),
            more=lambda: curriculum.next(now),
            curriculum=curriculum,
            progress=lambda: (now, training.steps),
            **({"answer": verifier.answer} if isinstance(verifier, Locates) else {}),
        )

    rollout = answering(made.rollout)
    looks = answering(curriculum.answers) if hasattr(curriculum, "answers") else rollout
    kind = torch.optim.Adam if training.optimizer == "adam" else torch.optim.SGD
    optimizer = kind(policy.module.parameters(), lr=training.lr)
    models = Models(policy, reference, training.temperature, 2**20, random("signals"), engine.encode, engine=engine)
    for learner in made.learners:
        learner.start(models)

    first = {name: value.clone() for name, value in policy.module.state_dict().items()}

    def apply(objective: Any, batch: Any) -> dict[str, float]:
        return update(
            policy,
            objective,
            batch,
            optimizer,
            live=getattr(objective, "live", ()),
            temperature=training.temperature,
            token_budget=2**20,
            max_grad_norm=float("inf"),
            skip_idle=getattr(objective, "zero_advantage_is_idle", False),
        )[0]

    dtype = next(policy.module.parameters()).dtype
    for now in range(training.steps):  # which the rollout may ask for
        if hasattr(curriculum, "survey") and (data := curriculum.survey(now)):
            rng = random("survey")
            curriculum.settle(now, look(curriculum, data, looks, engine, verifier, made, models, rng, dtype))
            if getattr(curriculum, "again", bool)():
                policy.module.load_state_dict(first)
                optimizer = kind(policy.module.parameters(), lr=training.lr)
        asks = curriculum.next(now)
        groups, batch = sample(asks, rollout, engine, verifier, made, models, random("rollout"), dtype=dtype)
        metrics: dict[str, float] = {}
        if len(batch):
            rng = random("mini-batches")
            metrics = learn(batch, made, models, rng, apply, training.epochs, training.mini_batches)
        metrics = {**metrics, **getattr(rollout, "metrics", dict)()}
        history.note(now, unaided(groups))
        curriculum.observe(unaided(groups))
        watch(now, batch, metrics)


def jitter(spread: float, seed: int, *shape: int) -> np.ndarray:
    """Return normal logits of a standard deviation to begin with, the same for every arm of a seed.

    From a start where some choices are exactly alike a method can seem to keep them so.
    """
    return spread * np.random.default_rng([seed, 29]).standard_normal(shape)


def pass_at(p: np.ndarray, k: int) -> float:
    """Mean over tasks of 1 - (1 - p)^k: the exact chance that one of k samples is right."""
    return float(np.mean(1 - (1 - p) ** k))
