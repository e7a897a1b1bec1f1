"""What does not fit each other in a run, told before anything expensive starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.config import RunConfig
from assay.errors import UsageError
from assay.learning.signals import check_signals
from assay.learning.warmup import demonstrations
from assay.method import Method
from assay.policies.causal_lm import CausalLM
from assay.policies.context import CHARACTERS
from assay.policies.policy import acts, draws
from assay.training.stages import Stage
from assay.types import Task

TEMPLATE = 256
"""Tokens that special tokens and a chat template may add to a prompt, at most."""


def check_config(config: RunConfig) -> None:
    """Raise UsageError for sections that do not go together."""
    check_quantised(config)
    check_alone(config)
    check_verifiers(config)


def check_quantised(config: RunConfig) -> None:
    """Raise UsageError if the weights are to be in four bits, and there would be nothing to learn, or to shard."""
    if config.model.quantise is not None and config.model.lora is None:
        raise UsageError("model.quantise: weights in four bits do not learn; add adapters, model.lora.rank=16")
    if config.model.quantise is not None and config.scale.trainers > 1:
        raise UsageError("model.quantise: weights in four bits are not sharded; set scale.trainers=1")


def check_verifiers(config: RunConfig) -> None:
    """Raise UsageError for a verifier of what is learnt from beside actors that judge by the other one."""
    if config.tasks.train_verify is not None and config.scale.verifiers:
        raise UsageError("tasks.train_verify: scale.verifiers judge by tasks.verify alone; set scale.verifiers=0")


def check_alone(config: RunConfig) -> None:
    """Raise UsageError for a flow, or a policy of numbers, that is to be trained by several processes, or by text."""
    scale = config.scale
    what = "a flow learns and draws" if draws(config.model) else "a policy of numbers learns and acts"
    if not (draws(config.model) or acts(config.model)):
        return
    if scale.trainers > 1 or scale.engines or scale.verifiers:
        raise UsageError(f"model.source: {what} in one process; set scale.trainers=1 and no engines")
    if acts(config.model) and config.warmup.steps:
        raise UsageError("warmup.steps: a policy of numbers reads no solutions; leave it out, and learn from records")


def check_learners(curriculum: Any, method: Method) -> None:
    """Raise UsageError for a curriculum that reads a signal with parameters of its own which no part has learn."""
    for need in getattr(curriculum, "needs", ()):
        if hasattr(need, "learn") and need not in method.learners:
            raise UsageError(
                f"curriculum {type(curriculum).__name__} reads the signal {need.name!r}, which learns, and no part of "
                "the method has it learn; give a reward, selection or credit the same signal"
            )


def check_stage(stage: Stage, policy: CausalLM, warmup: bool) -> None:
    """Raise UsageError if parts of a stage, or its tasks, do not fit the policy.

    Args:
        stage: of the run.
        policy: that learns.
        warmup: whether it learns from solutions first.
    """
    needs = stage.method.needs | getattr(stage.curriculum, "needs", frozenset())
    check_signals(needs, stage.method.live, policy)
    check_learners(stage.curriculum, stage.method)
    signals = [need for need in needs if not isinstance(need, str)]
    for piece in (*stage.method.learners, *signals, stage.rollout):
        getattr(piece, "check", lambda _: None)(policy)
    check_fit(stage.tasks, policy, warmup, stage.rollout)


def check_fit(tasks: Iterable[Task], policy: CausalLM, warmup: bool, rollout: Any = None) -> None:
    """Raise UsageError for a prompt that is no text or leaves no room for a response.

    With ``warmup``, the same goes for a prompt with its solution, and a task without one that the rollout does not
    demonstrate.
    """
    around = max(TEMPLATE, len(policy.encode("?"))) if getattr(policy, "chat", False) else TEMPLATE
    for task in tasks:
        text = task.question + (task.solution or "" if warmup else "")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise UsageError(f"task {task.id!r}: its text is no Unicode, {error.reason} in {text[:60]!r}") from None
        if len(text) > CHARACTERS * policy.context:
            raise UsageError(
                f"task {task.id}: its text of {len(text):,} characters does not fit the model's context of "
                f"{policy.context} tokens; leave it out with tasks.max_prompt, or use a model with a longer context"
            )
        # A token covers a byte or more, so a short text needs no closer look; not every one is a sample.
        if size + around >= policy.context:
            length = len(policy.encode(task.prompt))
            if length >= policy.context:
                raise UsageError(
                    f"task {task.id}: its prompt of {length} tokens does not fit the model's context of "
                    f"{policy.context}; leave it out with tasks.max_prompt, or use a model with a longer context"
                )
        elif not warmup or (task.solution is not None and not getattr(policy, "draws", False)):
            continue
        if warmup:
            demonstrations([task], policy, rollout)
