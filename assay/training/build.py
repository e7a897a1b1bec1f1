"""From a configuration to a trainer, with everything that can be wrong found before anything expensive starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from assay.config import RunConfig, StageConfig, load_config
from assay.console import Reporter
from assay.curriculum.pass_rates import PassRates
from assay.engines.base import Engine, Follower, engine_of
from assay.engines.target import check_source
from assay.errors import UsageError
from assay.learning.memory import keep_freed_memory
from assay.learning.rate import fitting_rate
from assay.learning.threads import use_cores
from assay.method import Method, make_method
from assay.policies.base import Policy
from assay.policies.causal_lm import CausalLM
from assay.policies.policy import load_policy
from assay.randomness import Randomness, same_bits
from assay.records.run_folder import LOG, RunFolder, free_folder
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.scale.divided import DividedVerifier, divided_engine
from assay.scale.folder import SharedFolder
from assay.scale.ranks import Ranks
from assay.scale.ray.cluster import Cluster
from assay.scale.ray.setup import cluster_of, remote_engine, remote_verifier
from assay.scale.setup import joined, quieted
from assay.tasks.base import TaskSource
from assay.tasks.configured import GIVEN, check_given, task_split
from assay.tasks.split import LOOKED, TrainStream, beside
from assay.training.ahead.shadow import Shadow
from assay.training.checks import check_config, check_fit, check_stage
from assay.training.events import Events, make_events
from assay.training.loop import Trainer
from assay.training.partner import Second
from assay.training.stages import Stage, make_stage
from assay.types import Task
from assay.verify.base import Verifier
from assay.verify.configured import make_training_verifier, make_verifier
from assay.verify.isolate.pool import check_verifier


def build_trainer(
    config: RunConfig,
    reporter: Reporter,
    *,
    resume: Path | None = None,
    overrides: Sequence[str] = (),
    tasks: TaskSource | Sequence[Task] | None = None,
    eval_tasks: TaskSource | Sequence[Task] | None = None,
    method: Method | None = None,
    reward: RewardPart | Callable[..., Any] | Sequence[Any] | None = None,
    callbacks: Sequence[Any] = (),
    loggers: Sequence[Any] = (),
    kind: Callable[..., Trainer] = Trainer,
    ranks: Ranks | None = None,
) -> Trainer:
    """Make every part of a run, check that they fit each other, then make (or open) the run's folder.

    Args:
        config: the run; ignored on resume, when the folder's own configuration counts.
        resume: folder of a run to continue.
        overrides: changes to a resumed run's configuration.
        tasks, eval_tasks, method, reward: objects in place of what the configuration names.
        callbacks, loggers: parts beside those that the configuration names.
        kind: makes the trainer of its parts.
        ranks: that train together; as many as ``scale.trainers`` says, found by what the environment says, if left out.

    Raises:
        UsageError: anything that does not fit.
    """
    given = {"tasks": tasks, "eval_tasks": eval_tasks, "method": method, "reward": reward}
    told = {"callbacks": callbacks, "loggers": loggers}
    if resume is None:
        config = _noted(config, given)
        ranks = ranks or joined(config)
        config = _placed(config, ranks, reporter)
        return _assemble(config, reporter, None, given, told, kind, ranks)
    if ranks is None:
        stored = resume / "config.toml"
        ranks = joined(load_config(stored, list(overrides))) if stored.is_file() else Ranks()
    folder = SharedFolder.opened(ranks, lambda: RunFolder.resume(resume, overrides))
    try:
        return _assemble(folder.config, reporter, folder, given, told, kind, ranks)
    except BaseException:
        folder.close()
        raise


def _assemble(
    config: RunConfig,
    reporter: Reporter,
    folder: RunFolder | None,
    given: Mapping[str, Any],
    told: Mapping[str, Sequence[Any]],
    kind: Callable[..., Trainer],
    ranks: Ranks,
) -> Trainer:
    check_given(config, given)
    check_config(config)
    if folder is None:
        ranks.once(lambda: check_source(config.model.source))
    events = make_events(config, say=reporter.line, **told)
    if not ranks.first:
        events = Events()
        config, reporter = quieted(config, ranks), Reporter(quiet=True)
    if config.deterministic:
        same_bits()
    random = Randomness(config.seed)
    inside = [stage.within(config) for stage in config.stages]
    methods = _methods(config, inside, given)
    stream, eval_tasks = task_split(config, given["tasks"], given["eval_tasks"])
    apart = config.tasks.eval_source is not None
    known = [stream.source[i] for i in range(LOOKED)] if apart and stream.source.size is None else eval_tasks
    cluster = cluster_of(config, ranks, reporter)
    examiner, judges = _judges(config, ranks, cluster, eval_tasks if apart else ())
    made: list[Trainer] = []  # a rollout that asks for more prompts does so in the trainer's step
    history = PassRates()
    common = (judges, ranks, history, lambda: (made[0].step, made[0].begun))
    if config.stages:
        parts = zip(config.stages, inside, methods, strict=True)
        stages = [_stage(*part, stream, known, common) for part in parts]
    else:
        stages = [make_stage("", config, None, methods[0], stream, known, *common)]
    stages[-1].best = config.run.best
    first = stages[0]
    policy = _policy(config, ranks)
    config, chosen = _chosen(config, policy, stream, len(eval_tasks))
    for stage in stages:
        stage.config = _rated(stage.config, config) if stage.name else config
        check_stage(stage, policy, stage is first and config.warmup.steps > 0)
    if apart:
        check_fit(eval_tasks, policy, False)
    engine = _engine(config, policy, ranks, cluster)
    said = [f"{stage.where}{line}" for stage in stages for line in stage.said]
    for line in [*said, *([*stream.described, *chosen] if folder is None else [])]:
        reporter.line(line)
    trainer = kind(
        config=config,
        folder=folder or SharedFolder.opened(ranks, lambda: RunFolder.create(config, given)),
        policy=policy,
        engine=engine,
        stream=first.stream,
        eval_tasks=eval_tasks,
        verifier=judges[0],
        examiner=examiner,
        curriculum=first.curriculum,
        rollout=first.rollout,
        method=first.method,
        random=random,
        reporter=reporter,
        ranks=ranks,
        events=events,
        stages=stages,
        history=history,
    )
    if ranks.first:
        reporter.keep(trainer.folder.path / LOG)
    trainer.enter(0, 0)
    if first.method.partner is not None:
        trainer.partner = Second.load(first.method.partner, config, random, ranks)
    made.append(trainer)
    return trainer


def _methods(config: RunConfig, inside: Sequence[RunConfig], given: Mapping[str, Any]) -> list[Method]:
    """Return the method of each stage, whose configurations are ``inside``, or the only one."""
    if inside and (extra := [key for key in ("method", "reward") if given[key] is not None]):
        raise UsageError(f"a run in stages has its {extra[0]} in its recipe; leave out {extra[0]}=...")
    methods = []
    for number, each in enumerate(inside or [config]):
        with _named(config.stages[number] if inside else None):
            methods.append(_method(each, given))
    return methods


def _judges(
    config: RunConfig, ranks: Ranks, cluster: Cluster | None, held_out: Sequence[Task]
) -> tuple[Verifier, tuple[Verifier, Verifier]]:
    """Return who judges held-out tasks, and who judges what is learned from: for all processes, and in this one."""

    def shared(verifier: Verifier) -> Verifier:
        return DividedVerifier(verifier, ranks.apart()) if ranks.size > 1 else verifier

    own = make_verifier(config)
    if held_out:
        check_verifier(own, held_out)
    if cluster is not None and config.scale.verifiers:
        examiner: Verifier = remote_verifier(cluster, config, ranks)
    else:
        examiner = shared(own)
    taught = make_training_verifier(config)
    return examiner, (examiner, own) if taught is None else (shared(taught), taught)


def _policy(config: RunConfig, ranks: Ranks) -> CausalLM:
    """Load what learns, sharded where several processes train it."""
    keep_freed_memory()
    use_cores()
    if ranks.size == 1:
        return load_policy(config.model, config.seed)
    from assay.scale.sharding import ShardedLM

    return ShardedLM.load_sharded(config.model, config.seed, ranks, config.scale.offload)


def _engine(config: RunConfig, policy: CausalLM, ranks: Ranks, cluster: Cluster | None) -> Engine:
    """Return what generates: here or elsewhere, and with weights of its own where it is to run ahead of the policy."""

    def own(policy: Policy) -> Engine:
        spec = {"name": config.engine.name, **config.engine.options}
        return engine_of(policy, spec, config.rollout.max_rows)

    if cluster is not None and config.scale.engines:
        engine = remote_engine(cluster, config, policy, ranks)
    else:
        engine = divided_engine(own(policy), policy, ranks)
    if cluster is not None and ranks.first:
        cluster.join()
    if config.overlap.staleness and not isinstance(engine, Follower):
        engine = Shadow(policy, own)
    return engine


def _method(config: RunConfig, given: Mapping[str, Any]) -> Method:
    """Return the method that a configuration and objects passed beside it describe."""
    parts = {k: v for k, v in config.method.model_dump(exclude={"name"}).items() if v != GIVEN}
    if given["reward"] is not None:
        parts["reward"] = given["reward"]
    return make_method(given["method"] or config.method.name, **parts)


def _stage(
    stage: StageConfig,
    config: RunConfig,
    method: Method,
    run: TrainStream,
    some: Sequence[Task],
    common: tuple[Any, ...],
) -> Stage:
    """Make a stage of several; each has a stream of its own.

    Raises:
        UsageError: what does not fit, by the stage's name.
    """
    with _named(stage):
        source = run.source if stage.tasks is None else build("tasks", config.tasks.source)
        if method.partner is not None:
            raise UsageError("its method trains a second policy beside the first, which no stage of several can")
        stream = beside(run, source)
        known = some if stage.tasks is None else [source[i] for i in range(LOOKED if source.size is None else 0)]
        made = make_stage(stage.name, config, stage.until, method, stream, known, *common)
        made.best = stage.best
        return made


@contextmanager
def _named(stage: StageConfig | None) -> Iterator[None]:
    """Say of an error in which stage it is."""
    try:
        yield
    except UsageError as error:
        raise error if stage is None else UsageError(f"stage {stage.name!r}: {error}") from error


def _rated(config: RunConfig, run: RunConfig) -> RunConfig:
    """Return a stage's configuration with the learning rate that was chosen for the run, if it names none."""
    if config.train.lr != "auto":
        return config
    return config.model_copy(update={"train": config.train.model_copy(update={"lr": run.train.lr})})


def _placed(config: RunConfig, ranks: Ranks, reporter: Reporter) -> RunConfig:
    """Return the configuration with a folder that is free, and say where that is another one than it named."""
    wanted = Path(config.run.dir)
    found = ranks.once(lambda: free_folder(wanted))
    if found == wanted:
        return config
    if ranks.first:
        reporter.line(
            f"run folder {found}, as {wanted} has a run; to go on with that: assay train --resume {quote(str(wanted))}"
        )
    return config.model_copy(update={"run": config.run.model_copy(update={"dir": str(found)})})


def _chosen(config: RunConfig, policy: CausalLM, stream: TrainStream, held_out: int) -> tuple[RunConfig, list[str]]:
    """Return the configuration with what it leaves to ``auto`` chosen, and a line on each choice."""
    said, size = [], stream.source.size
    if config.tasks.eval_source is not None:
        said.append(f"held out to measure progress: {held_out:,} different tasks of their own (tasks.eval_source)")
        held = stream.held_out or (lambda task: False)
        if size is not None and (both := sum(held(stream.source[i]) for i in range(size))):
            said.append(f"left out in training: {both:,} of {size:,} tasks, which stand in tasks.eval_source too")
    elif config.tasks.eval_size == "auto":
        of = "tasks of the endless source" if size is None else f"of {size:,} tasks"
        said.append(f"held out to measure progress: {held_out:,} {of} (tasks.eval_share, tasks.eval_size)")
    most = config.tasks.max_prompt
    if most is not None and size is not None and (long := sum(not stream.fits(stream.source[i]) for i in range(size))):
        said.append(f"left out: {long:,} of {size:,} tasks, whose prompts have over {most:,} tokens (tasks.max_prompt)")
    if config.train.lr == "auto":
        count = sum(p.numel() for p in policy.model.parameters())
        rate = fitting_rate(count, policy.adapter is not None)
        config = config.model_copy(update={"train": config.train.model_copy(update={"lr": rate})})
        what = f"{count / 1e6:,.2f} million parameters" + ", of which adapters learn" * (policy.adapter is not None)
        said.append(f"learning rate {rate:g}, for {what} (train.lr)")
    return config, said


def _noted(config: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    """Return the configuration with :data:`GIVEN` where an object was passed."""
    tasks, method = config.tasks, config.method
    if given["tasks"] is not None:
        tasks = tasks.model_copy(update={"source": GIVEN})
    if given["eval_tasks"] is not None:
        tasks = tasks.model_copy(update={"eval_source": GIVEN})
    if given["method"] is not None:
        method = method.model_copy(update={"name": GIVEN})
    if given["reward"] is not None:
        method = method.model_copy(update={"reward": GIVEN})
    return config.model_copy(update={"tasks": tasks, "method": method})
