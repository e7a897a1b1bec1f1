"""From a configuration to a trainer, with everything that can be wrong found before anything expensive starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from assay.config import RunConfig
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.method import Method, make_method
from assay.policies.causal_lm import CausalLM
from assay.registry import build, call, find
from assay.rewards.base import RewardPart
from assay.rewards.function import FunctionReward
from assay.tasks.base import TaskSource
from assay.tasks.split import TrainStream, split
from assay.training.console import Reporter
from assay.training.loop import Trainer
from assay.training.randomness import Randomness
from assay.training.run_folder import RunFolder
from assay.training.signals import check_signals
from assay.training.warmup import demonstrations
from assay.types import Task
from assay.verify import KindVerifier
from assay.verify.base import Verifier


def build_trainer(
    config: RunConfig,
    reporter: Reporter,
    *,
    resume: Path | None = None,
    overrides: Sequence[str] = (),
    tasks: TaskSource | Sequence[Task] | None = None,
    method: Method | None = None,
    reward: RewardPart | Callable[..., Any] | None = None,
) -> Trainer:
    """Make every part of a run, check that they fit each other, then make (or open) the run's folder.

    Args:
        config: the run; ignored on resume, when the folder's own configuration counts.
        resume: folder of a run to continue.
        overrides: changes to a resumed run's configuration.
        tasks, method, reward: objects in place of what the configuration names.

    Raises:
        UsageError: anything that does not fit.
    """
    folder = RunFolder.resume(resume, list(overrides)) if resume is not None else None
    config = folder.config if folder is not None else config
    random = Randomness(config.seed)
    method = method or make_method(**config.method.model_dump())
    if reward is not None:
        method = _with_reward(method, reward)
    stream, eval_tasks = task_split(config, tasks)
    verifier = make_verifier(config)
    if isinstance(verifier, KindVerifier):
        verifier.check(eval_tasks)
    if method.group_relative and config.rollout.group < 2:
        raise UsageError(
            f"credit {type(method.credit).__name__} compares a response with its siblings; rollout.group = "
            f"{config.rollout.group} leaves it none, use 2 or more"
        )
    policy = CausalLM.load(config.model, config.seed)
    check_signals(method.needs, method.live, policy)
    check_tasks(config, policy, stream, eval_tasks)
    settings = config.rollout
    sampling = Sampling(settings.max_tokens, settings.temperature, settings.top_p, settings.top_k, tuple(settings.stop))
    return Trainer(
        config=config,
        folder=folder or RunFolder.create(config),
        policy=policy,
        engine=HFEngine(policy, settings.max_rows),
        stream=stream,
        eval_tasks=eval_tasks,
        verifier=verifier,
        curriculum=_make("curriculum", method.curriculum, stream=stream, prompts=settings.prompts, group=settings.group),
        rollout=_make("rollout", method.rollout, sampling=sampling),
        method=method,
        random=random,
        reporter=reporter,
    )


def task_split(config: RunConfig, tasks: TaskSource | Sequence[Task] | None = None) -> tuple[TrainStream, list[Task]]:
    """Return the stream of training tasks and the held-out ones."""
    source = build("tasks", config.tasks.source) if tasks is None else tasks
    if isinstance(source, Sequence):
        from assay.tasks.listed import Listed

        source = Listed(source)
    return split(source, config.tasks.eval_share, config.tasks.eval_size, config.seed)


def make_verifier(config: RunConfig) -> Verifier:
    """Return the verifier a configuration names, or the one that goes by each task's kind."""
    return build("verify", config.tasks.verify) if config.tasks.verify is not None else KindVerifier()


def check_tasks(config: RunConfig, policy: CausalLM, stream: TrainStream, eval_tasks: list[Task]) -> None:
    """Raise UsageError for a held-out prompt that leaves no room for a response, or a warm-up without solutions."""
    for task in eval_tasks:
        length = len(policy.encode(task.prompt))
        if length >= policy.context:
            raise UsageError(
                f"task {task.id}: its prompt of {length} tokens does not fit the model's context of {policy.context}; "
                "leave the task out or use a model with a longer context"
            )
    if config.warmup.steps:
        demonstrations(list(islice(eval_tasks, 4)), policy)


def _with_reward(method: Method, reward: RewardPart | Callable[..., Any]) -> Method:
    from dataclasses import replace

    import inspect

    names = inspect.signature(reward).parameters
    part = reward if list(names) == ["batch"] else FunctionReward(reward)
    return replace(method, reward=part)


def _make(seam: str, spec: Any, **given: Any) -> Any:
    """Make a part from its specification and what the run gives; a ready part is returned as it is."""
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, dict):
        return spec
    options = dict(spec)
    name = options.pop("name")
    return call(find(seam, name), options, f"{seam} {name!r}", given)
