"""The Python interface: as short as the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from assay.config import RunConfig, load_config, merged, put, table
from assay.console import Reporter
from assay.errors import AssayError, UsageError
from assay.method import Method
from assay.records.checkpoints import kept_best
from assay.records.evaluation import Evaluation
from assay.report.html import write_report
from assay.report.live import LiveReport
from assay.tasks.base import TaskSource
from assay.tasks.files.fields import PROMPTS
from assay.training.build import build_trainer
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left: its folder, the evaluations before and after RL, the signal that stopped it early, if any.

    ``unjudged`` is why the first verdict abstained, if every one did and no response had a reward. ``best`` has the
    weights that ``run.best`` kept.
    """

    folder: Path
    before: Evaluation | None
    after: Evaluation | None
    stopped_by: str | None = None
    unjudged: str = ""
    best: Path | None = None


def train(
    recipe: str | Path | Mapping[str, Any] | RunConfig | None = None,
    *,
    model: str | Mapping[str, Any] | None = None,
    tasks: str | Mapping[str, Any] | TaskSource | Sequence[Task] | None = None,
    eval_tasks: str | Mapping[str, Any] | TaskSource | Sequence[Any] | None = None,
    method: str | Mapping[str, Any] | Method | None = None,
    reward: Callable[..., Any] | str | Mapping[str, Any] | Sequence[Any] | None = None,
    overrides: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    resume: str | Path | None = None,
    callbacks: Sequence[Any] = (),
    loggers: Sequence[Any] = (),
    quiet: bool = False,
    **sections: Any,
) -> Result:
    """Train a model and return where the run is.

    Args:
        recipe: a TOML file, the name of a recipe of the package, a file of tasks, a mapping of sections, a
            configuration, or ``None`` for the defaults.
        model: what learns: ``nano``, a folder, a GGUF file, a hub id, or a ``[model]`` table.
        tasks: a source's name or table, a file of tasks, a ``[tasks]`` table, a source, a list of tasks, or tables with
            fields of usual names: a list of them, a data set of the library ``datasets``, or a data frame.
        eval_tasks: what is held out, where it is of its own: what ``tasks.eval_source`` can be, or likewise.
        method: ``grpo``, a paper's id, a ``[method]`` table, or a :class:`~assay.method.Method`.
        reward: ``reward(task, response) -> float``, TRL's ``reward(prompts, completions, **columns) -> list[float]``, a
            reward part or its name or table, ``"file.py:name"``, or a list of these, tables with a ``weight``; in place
            of the verdict's score.
        overrides: ``a.b.c=value`` each.
        settings: any keys of a recipe by their full names, ``{"tasks.eval_size": 50}``; also beside a source, a
            method or a reward that is a Python object.
        resume: folder of a run to continue.
        callbacks: called as the run goes on, :class:`~assay.training.callbacks.Callback`; names, tables or objects,
            after those of ``run.callbacks``. They are not in the run's configuration: a resumed run is given them too.
        loggers: where metrics and samples of rollouts go besides: ``"wandb"``, ``{"name": "mlflow", "uri": ...}``, or a
            :class:`~assay.loggers.base.Logger`; likewise.
        quiet: print nothing.
        sections: any section of a recipe, ``rollout={"group": 16}``, or ``seed=1``. What a section does not name keeps
            what the recipe says, in tables within it too.

    Raises:
        UsageError: something does not fit; nothing was started.
        RunError: something failed while running; the last checkpoint is kept.
    """
    source = tasks if isinstance(tasks, str | Mapping) else None
    apart = eval_tasks if eval_tasks is not None and _is_plain(eval_tasks) and not _is_rows(eval_tasks) else None
    name = method if isinstance(method, str | Mapping) else None
    plain = reward if isinstance(reward, str | Mapping | list | tuple) and _is_plain(reward) else None
    if resume is not None and (
        sections or settings or any(v is not None for v in (recipe, model, source, apart, name, plain))
    ):
        raise UsageError(
            "a resumed run keeps its recipe; beside resume, give overrides, and the tasks, eval_tasks, method or "
            "reward that were Python objects"
        )
    if isinstance(recipe, RunConfig):
        data = recipe.model_dump(mode="json", exclude_unset=True)
    elif recipe is None or isinstance(recipe, Mapping):
        data = deepcopy(dict(recipe or {}))
    else:
        data = load_config(recipe).model_dump(mode="json", exclude_unset=True)
    for key, section in sections.items():
        data[key] = merged(table(data, key), section) if isinstance(section, Mapping) else section
    if isinstance(model, str):
        data["model"] = {**table(data, "model"), "source": model}
    elif model is not None:
        data["model"] = merged(table(data, "model"), model)
    if source is not None:
        whole = isinstance(source, Mapping) and "name" not in source
        data["tasks"] = {**table(data, "tasks"), **(source if whole else {"source": source})}  # type: ignore[dict-item]
    if apart is not None:
        data["tasks"] = {**table(data, "tasks"), "eval_source": apart}
    if method is not None:
        data["method"] = name or {}
    if plain is not None:
        data["method"] = {**table(data, "method"), "reward": plain}
    for key, value in (settings or {}).items():
        put(data, key, value)
    trainer = build_trainer(
        load_config(data, () if resume is not None else overrides),
        Reporter(quiet),
        resume=Path(resume) if resume is not None else None,
        overrides=overrides,
        tasks=tasks if _is_object(tasks) else None,  # type: ignore[arg-type]
        eval_tasks=eval_tasks if apart is None else None,  # type: ignore[arg-type]
        method=method if _is_object(method) else None,  # type: ignore[arg-type]
        reward=None if plain is not None else reward,  # type: ignore[arg-type]
        callbacks=[*callbacks, LiveReport()],
        loggers=loggers,
    )
    run = trainer.folder
    try:
        interrupt = trainer.run(resume is not None)
        if trainer.config.run.report:
            with run.writing("the report"):
                trainer.reporter.line(f"report: {write_report(run.path)}")
    except KeyboardInterrupt:
        trainer.reporter.line(f"stopped at once; continue with: assay train --resume {quote(str(run.path))}")
        raise
    except AssayError as error:
        trainer.reporter.note(f"ended: {error}")
        raise
    finally:
        run.close()

    def evaluation(label: str) -> Evaluation | None:
        path = run.evaluation(label)
        return Evaluation.from_parquet(path) if path.is_file() else None

    stopped = interrupt.requested.name if interrupt.requested else None
    best = kept_best(run.path)[-1:] if trainer.config.run.best is not None else []
    return Result(run.path, evaluation("before"), evaluation("after"), stopped, trainer.unjudged or "", *best)


def _is_object(value: Any) -> bool:
    """Whether an argument is a part itself, not a name or a table."""
    return value is not None and not isinstance(value, str | Mapping)


def _is_rows(value: Any) -> bool:
    """Whether a list is one of tables that are tasks: they have prompts, and do not name where tasks are from."""
    if not isinstance(value, list | tuple) or not value:
        return False
    if not all(isinstance(row, Mapping) for row in value):
        return False
    return all(set(PROMPTS) & set(row) and not {"name", "path"} & set(row) for row in value)


def _is_plain(value: Any) -> bool:
    """Whether an argument is text, numbers, tables and lists alone, which a recipe can hold."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    return isinstance(value, str | int | float) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def evaluate(
    target: str | Path,
    *,
    overrides: Sequence[str] = (),
    samples: int | None = None,
    quiet: bool = False,
    out: str | Path | None = None,
    scorer: Any = None,
    chain: Any = None,
    equal: str = "same",
    verifier: str | Mapping[str, Any] | None = None,
    fields: Mapping[str, str] | None = None,
    reference: str | None = None,
    threshold: float | None = None,
    by: Sequence[str] = (),
    workers: int | None = None,
    chain_votes: int = 3,
    chain_rule: Literal["any", "majority", "all"] = "majority",
    chain_every: bool = False,
) -> Evaluation:
    """Measure a model on held-out tasks, or samples that are there already.

    Args:
        target: a run folder (its last checkpoint, its tasks), a recipe (its model, its tasks), a model's name,
            ``openai:MODEL@http://host/v1``; a file of samples (JSONL, JSON, CSV, Parquet); or the folder or Parquet
            file of an evaluation.
        overrides: changes to the configuration, ``a.b.c=value`` each; and a benchmark, ``gsm8k`` or ``gsm8k=PATH``, in
            place of the held-out tasks.
        samples: responses per task; ``evaluate.samples`` of the configuration unless given.
        quiet: show no progress.
        out: folder that keeps every sample as it comes; an evaluation that was stopped goes on where it was.
        scorer: gives each response a confidence; the model's own unless given, ``"none"`` for no confidence.
        chain: judges the reasoning, for CoT-pass@k: ``"judge"``, ``openai:MODEL@URL`` or a scorer.
        chain_votes, chain_rule: opinions of that judge about each chain, and how many of them must call it sound.
        chain_every: ask it about responses with a wrong answer too.
        equal: when two answers are one: ``same``, ``exact`` or ``verifier``.
        verifier: judges in place of the one that each task's kind names; a file that does not say what is right needs
            one.
        fields, reference, threshold: of a file of samples, see :class:`assay.records.foreign.Reader`.
        by: fields of the tasks' meta to keep of a file of samples.
        workers: processes that judge a file of samples; the number of cores unless given, 0 judges in this process.

    Raises:
        UsageError: the target is none of these, or something does not fit.
        RunError: something failed on the way; what was stored is kept.
    """
    from assay.evaluate.run import run
    from assay.evaluate.source import Options
    from assay.tasks.files.benchmark import expanded

    options = Options(
        samples, scorer, chain, equal, verifier, dict(fields or {}), reference, threshold, tuple(by), workers,
        chain_votes, chain_rule, chain_every,
    )  # fmt: skip
    found, about = run(str(target), expanded(overrides), options, None if out is None else Path(out), Reporter(quiet))
    return Evaluation("evaluation", int(about["step"]), tuple(found))
