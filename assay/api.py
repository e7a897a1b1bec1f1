"""The Python interface: as short as the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.config import RunConfig, load_config, table
from assay.errors import UsageError
from assay.evaluate.evaluation import Evaluation
from assay.method import Method
from assay.tasks.base import TaskSource
from assay.training.build import build_trainer
from assay.training.console import Reporter
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left: its folder, the evaluations before and after RL, the signal that stopped it early, if any."""

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
        tasks: a source's name or table, a ``[tasks]`` table, a source, or a list of tasks.
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
    source = tasks if isinstance(tasks, str | Mapping) else None
    name = method if isinstance(method, str | Mapping) else None
    file = reward if isinstance(reward, str) else None
    if resume is not None and (sections or any(v is not None for v in (recipe, model, source, name, file))):
        raise UsageError(
            "a resumed run keeps its recipe; beside resume, give overrides, and the tasks, method or reward that were "
            "Python objects"
        )
    if isinstance(recipe, RunConfig):
        data = recipe.model_dump(mode="json", exclude_unset=True)
    elif recipe is None or isinstance(recipe, Mapping):
        data = dict(recipe or {})
    else:
        data = load_config(recipe).model_dump(mode="json", exclude_unset=True)
    for key, section in sections.items():
        data[key] = {**table(data, key), **section} if isinstance(section, Mapping) else section
    if isinstance(model, str):
        data["model"] = {**table(data, "model"), "source": model}
    elif model is not None:
        data["model"] = model
    if source is not None:
        whole = isinstance(source, Mapping) and "name" not in source
        data["tasks"] = {**table(data, "tasks"), **(source if whole else {"source": source})}  # type: ignore[dict-item]
    if method is not None:
        data["method"] = name or {}
    if file is not None:
        data["method"] = {**table(data, "method"), "reward": {"name": "function", "function": file}}
    trainer = build_trainer(
        load_config(data, () if resume is not None else overrides),
        Reporter(quiet),
        resume=Path(resume) if resume is not None else None,
        overrides=overrides,
        tasks=tasks if _is_object(tasks) else None,  # type: ignore[arg-type]
        method=method if _is_object(method) else None,  # type: ignore[arg-type]
        reward=reward if _is_object(reward) else None,  # type: ignore[arg-type]
    )
    run = trainer.folder
    try:
        interrupt = trainer.run(resume is not None)
        if trainer.config.run.report:
            from assay.report.html import write_report

            with run.writing("the report"):
                trainer.reporter.line(f"report: {write_report(run.path)}")
    except KeyboardInterrupt:
        trainer.reporter.line(f"stopped at once; continue with: assay train --resume {run.path}")
        raise
    finally:
        run.close()

    def evaluation(label: str) -> Evaluation | None:
        path = run.evaluation(label)
        return Evaluation.from_parquet(path) if path.is_file() else None

    stopped = interrupt.requested.name if interrupt.requested else None
    return Result(run.path, evaluation("before"), evaluation("after"), stopped)


def _is_object(value: Any) -> bool:
    """Whether an argument is a part itself, not a name or a table."""
    return value is not None and not isinstance(value, str | Mapping)


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
    from assay.verify.pool import check_verifier

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
    verifier = make_verifier(config)
    check_verifier(verifier, tasks)
    policy = CausalLM.load(config.model, config.seed)
    if weights is not None:
        policy.load_weights(weights)
    with Reporter(quiet).progress("evaluate", len(tasks)) as tick:
        return measure(
            tasks,
            HFEngine(policy, config.rollout.max_rows),
            verifier,
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
            chunk=max(1, config.rollout.max_rows // max(1, samples)),
            progress=lambda done, total: tick(done),
        )
