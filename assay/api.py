"""The Python interface: as short as the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.config import RunConfig, load_config
from assay.evaluate.evaluation import Evaluation
from assay.method import Method
from assay.tasks.base import TaskSource
from assay.training.build import build_trainer
from assay.training.console import Reporter
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left: its folder, the evaluations before and after RL, and the signal that stopped it early, if any."""

    folder: Path
    before: Evaluation | None
    after: Evaluation | None
    stopped_by: str | None = None


def train(
    recipe: str | Path | Mapping[str, Any] | RunConfig | None = None,
    *,
    model: str | Mapping[str, Any] | None = None,
    tasks: str | Mapping[str, Any] | TaskSource | Sequence[Task] | None = None,
    method: str | Mapping[str, Any] | Method | None = None,
    reward: Callable[..., Any] | str | None = None,
    overrides: Sequence[str] = (),
    resume: str | Path | None = None,
    quiet: bool = False,
    **sections: Mapping[str, Any],
) -> Result:
    """Train a model and return where the run is.

    Args:
        recipe: a TOML file, a mapping of its sections, a configuration, or ``None`` for the defaults.
        model: what learns: ``nano``, a folder, a GGUF file, a hub id, or a ``[model]`` table.
        tasks: a source's name or table, a source, or a list of tasks.
        method: ``grpo``, a paper's id, a ``[method]`` table, or a :class:`~assay.method.Method`.
        reward: ``reward(task, response) -> float``, TRL's ``reward(prompts, completions, **columns) -> list[float]``, a
            reward part, or ``"file.py:name"``; in place of the verdict's score.
        overrides: ``a.b.c=value`` each.
        resume: folder of a run to continue.
        quiet: print nothing.
        sections: any section of a recipe, ``rollout={"group": 16}``.

    Raises:
        UsageError: something does not fit; nothing was started.
        RunError: something failed while running; the last checkpoint is kept.
    """
    data: dict[str, Any]
    if isinstance(recipe, RunConfig):
        data = recipe.model_dump(mode="json", exclude_unset=True)
    elif recipe is None or isinstance(recipe, Mapping):
        data = dict(recipe or {})
    else:
        data = load_config(recipe).model_dump(mode="json", exclude_unset=True)
    for name, section in sections.items():
        data[name] = {**data.get(name, {}), **section} if isinstance(section, Mapping) else section
    if model is not None:
        data["model"] = model
    if isinstance(tasks, str | Mapping):
        data["tasks"] = {**data.get("tasks", {}), "source": tasks}
    if isinstance(method, str | Mapping):
        data["method"] = method
    config = load_config(data, overrides)
    if isinstance(reward, str):
        from assay.rewards.function import load_function

        reward = load_function(reward)
    trainer = build_trainer(
        config,
        Reporter(quiet),
        resume=Path(resume) if resume is not None else None,
        overrides=overrides,
        tasks=None if tasks is None or isinstance(tasks, str | Mapping) else tasks,
        method=method if isinstance(method, Method) else None,
        reward=reward,
    )
    try:
        interrupt = trainer.run(resume is not None)
        if trainer.config.run.report:
            from assay.report.html import write_report

            path = write_report(trainer.folder.path)
            trainer.reporter.line(f"report: {path}")
    finally:
        trainer.folder.close()

    def evaluation(label: str) -> Evaluation | None:
        path = trainer.folder.evaluation(label)
        return Evaluation.from_parquet(path) if path.is_file() else None

    stopped = interrupt.requested.name if interrupt.requested else None
    return Result(trainer.folder.path, evaluation("before"), evaluation("after"), stopped)


def evaluate(
    target: str | Path,
    *,
    overrides: Sequence[str] = (),
    samples: int = 4,
    quiet: bool = False,
) -> Evaluation:
    """Measure a model on held-out tasks.

    Args:
        target: a run folder (its last checkpoint, its tasks), a recipe (its model, its tasks), or a model's name.
        overrides: changes to the configuration, ``a.b.c=value`` each.
        samples: responses per task.
        quiet: show no progress.

    Raises:
        UsageError: the target is none of these, or something does not fit.
    """
    from assay.engines.base import Sampling
    from assay.engines.hf import HFEngine
    from assay.evaluate.evaluation import evaluate as measure
    from assay.policies.causal_lm import CausalLM
    from assay.training.build import make_verifier, task_split
    from assay.training.randomness import Randomness
    from assay.training.run_folder import last_checkpoint

    path, step, weights = Path(target), 0, None
    if (path / "config.toml").is_file():
        config = load_config(path / "config.toml", overrides)
        _stage, step, folder = last_checkpoint(path)
        weights = folder / "policy"
    elif path.suffix == ".toml":
        config = load_config(path, overrides)
    else:
        config = load_config({"model": {"source": str(target)}}, overrides)
    random = Randomness(config.seed)
    _stream, tasks = task_split(config)
    policy = CausalLM.load(config.model, config.seed)
    if weights is not None:
        policy.load_weights(weights)
    with Reporter(quiet).progress("evaluate", len(tasks)) as tick:
        return measure(
            tasks,
            HFEngine(policy, config.rollout.max_rows),
            make_verifier(config),
            samples=samples,
            sampling=Sampling(
                config.rollout.max_tokens,
                config.evaluate.temperature,
                config.evaluate.top_p,
                stop=tuple(config.rollout.stop),
            ),
            rng=random.fresh("evaluate/command"),
            label="evaluation",
            step=step,
            chunk=max(1, config.rollout.max_rows // samples),
            progress=lambda done, total: tick(done),
        )
