"""An evaluation as a document: everything measured, in JSON with a schema, and as lm-evaluation-harness writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from statistics import NormalDist
from typing import Any

from assay.errors import UsageError, nearest
from assay.evaluate.measures import Measure, coverage, measures
from assay.records.sample import Sample, by_task

SCHEMA = "assay/evaluation/1"

LESS_IS_BETTER = ("cost", "entropy")


def results(samples: Sequence[Sample], about: Mapping[str, Any], by: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the document that ``results.schema.json`` describes.

    Args:
        samples: of the evaluation.
        about: ``target``, ``step``, ``settings``, and ``tasks``, the number there are to be; with fewer among the
            samples the document says that it is not complete. ``usage`` where endpoints were asked.
        by: see :func:`~assay.evaluate.measures.measures`.
    """
    found = measures(samples, by)
    tasks = len(by_task(samples))
    return {
        "schema": SCHEMA,
        "model": str(about["target"]),
        "step": int(about["step"]),
        "settings": json.loads(json.dumps(about["settings"], default=str)),
        "complete": tasks >= int(about["tasks"]),
        "tasks": tasks,
        "samples": len(samples),
        "abstained": sum(s.passed is None for s in samples),
        "metrics": {
            m.name: {"group": m.group, "value": m.value, "low": m.low, "high": m.high, "tasks": m.tasks} for m in found
        },
        "coverage": coverage(samples),
        **({"usage": dict(about["usage"])} if about.get("usage") else {}),
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema of :func:`results`."""
    return dict(json.loads(files("assay.evaluate").joinpath("results.schema.json").read_text(encoding="utf-8")))


def to_measures(document: Mapping[str, Any]) -> list[Measure]:
    """Return the metrics of a document, in its order."""
    return [Measure(name, **m) for name, m in document["metrics"].items()]


def chosen(found: Sequence[Measure], metrics: str) -> list[Measure]:
    """Return some of the metrics.

    Args:
        found: all of them.
        metrics: ``main``, ``all``, or names of groups or metrics with commas between them.

    Raises:
        UsageError: an unknown name.
    """
    if metrics == "all":
        return list(found)
    if metrics == "main":
        return [m for m in found if _is_main(m, found)]
    wanted = [name.strip() for name in metrics.split(",") if name.strip()]
    known = {m.group for m in found} | {m.name for m in found}
    for name in wanted:
        if name not in known:
            close = nearest(name, [*known, "main", "all"])
            groups = ", ".join(dict.fromkeys(m.group for m in found))
            hint = close if close.startswith("; did") else f"; groups there are: {groups}; or main, or all"
            raise UsageError(f"--metrics: nothing measured here is called {name!r}{hint}")
    return [m for m in found if m.group in wanted or m.name in wanted]


def _is_main(measure: Measure, found: Sequence[Measure]) -> bool:
    name, _, k = measure.name.partition("@")
    most = max((int(m.name[5:]) for m in found if m.name.startswith("pass@")), default=0)
    if measure.group == "accuracy":
        same = next((m.value for m in found if m.name == "pass@1"), None)
        return (name == "pass" and int(k) in (1, 4, 16, 64, 256, 1024, most)) or (
            name == "score" and measure.value != same
        )
    if measure.group in ("voting", "selection", "reasoning"):
        return k in ("", str(most))
    always = ("length", "tokens/right", "answers", "tokens", "auroc", "ece", f"pass^{most}", "turns", "invalid")
    some = ("truncated", "abstained")
    return measure.name in always or (measure.name in some and measure.value > 0) or measure.group.startswith("by ")


def lm_eval(document: Mapping[str, Any], finished: str) -> tuple[str, dict[str, Any]]:
    """Return what lm-evaluation-harness would write of this evaluation: its file's path and its content.

    The metrics of accuracy, voting, selection, stability and reasoning stand under ``NAME,none``, with the standard
    error that their interval amounts to, its width over twice the normal quantile.

    Args:
        document: of :func:`results`.
        finished: ISO time at which the evaluation ended.
    """
    settings = document["settings"]
    task = _task_name(settings)
    z = 2 * NormalDist().inv_cdf(0.975)
    values: dict[str, Any] = {"alias": task}
    better: dict[str, bool] = {}
    for m in to_measures(document):
        if m.group not in ("accuracy", "voting", "selection", "stability", "reasoning"):
            continue
        values[f"{m.name},none"] = m.value
        known = m.low is not None and m.high is not None
        values[f"{m.name}_stderr,none"] = (m.high - m.low) / z if known else "N/A"  # type: ignore[operator]
        better[m.name] = True
    sampling = settings.get("sampling", {})
    count = {"original": document["tasks"], "effective": document["tasks"]}
    when = datetime.fromisoformat(finished)
    name = str(document["model"])
    clean = re.sub(r"[\"<>:/|\\?*\[\]]+", "__", name)
    content = {
        "results": {task: values},
        "group_subtasks": {task: []},
        "configs": {
            task: {
                "task": task,
                "output_type": "generate_until",
                "num_fewshot": 0,
                "repeats": settings.get("samples", 1),
                "metric_list": [{"metric": m, "aggregation": "mean", "higher_is_better": True} for m in better],
                "generation_kwargs": sampling,
                "metadata": {"version": 1.0},
            }
        },
        "versions": {task: 1.0},
        "n-shot": {task: 0},
        "higher_is_better": {task: better},
        "n-samples": {task: count},
        "config": {
            "model": "assay",
            "model_args": f"pretrained={name}",
            "batch_size": None,
            "batch_sizes": [],
            "device": None,
            "use_cache": None,
            "limit": None,
            "bootstrap_iters": 2000,
            "gen_kwargs": sampling,
            "random_seed": settings.get("seed"),
            "numpy_seed": settings.get("seed"),
            "torch_seed": settings.get("seed"),
            "fewshot_seed": None,
        },
        "git_hash": None,
        "date": when.timestamp(),
        "task_hashes": {task: settings.get("tasks", {}).get("mark", "")},
        "model_source": "assay",
        "model_name": name,
        "model_name_sanitized": clean,
        "system_instruction": None,
        "chat_template": None,
    }
    return f"lm_eval/{clean.strip('_') or 'model'}/results_{when:%Y-%m-%dT%H-%M-%S}.000000.json", content


def _task_name(settings: Mapping[str, Any]) -> str:
    source = settings.get("tasks", {}).get("source", "samples")
    if isinstance(source, list):
        name = "_".join(each["as"] for each in source)
    else:
        name = source.get("name", "tasks") if isinstance(source, Mapping) else str(source)
    return re.sub(r"\W", "_", name)
