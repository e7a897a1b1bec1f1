"""``assay eval --harness``: every model under every harness, on the same tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.common import say
from assay.errors import RunError, UsageError

if TYPE_CHECKING:
    from assay.evaluate.harnesses import HarnessComparison, Run

FOUND = "harnesses.json"
"""In the folder of a comparison that is finished."""


def command(
    target: str,
    overrides: Sequence[str],
    harness: str,
    judge: str | None,
    samples: int | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare, print the tables or the JSON, and write it into the folder ``out`` if there is one."""
    from assay.console import Reporter
    from assay.engines.target import engine_setting, resolve, tasks_mark
    from assay.evaluate.harnesses import compare_harnesses
    from assay.evaluate.process_judge import ProcessJudge
    from assay.evaluate.strategies.folder import check
    from assay.tasks.configured import held_out, held_out_of

    if out is not None and out.suffix:
        raise UsageError(f"with --harness, --out is a folder for {FOUND}, not {out}")
    models = {name: resolve(name, overrides) for name in dict.fromkeys(target.split(",")) if name}
    names = [name.strip() for name in harness.split(",") if name.strip()]
    if not models or not names:
        raise UsageError("--harness needs a model and a harness, such as --harness bare,react,planned")
    splits = {name: held_out(found.config) for name, found in models.items()}
    marks = {name: tasks_mark(tasks) for name, tasks in splits.items()}
    first = next(iter(models))
    for name, mark in marks.items():
        if mark != marks[first]:
            raise UsageError(f"{name} has other held-out tasks than {first}; give tasks.source=... for all of them")
    config = models[first].config
    made = {name: _rollout(name, config, judge is not None) for name in names}
    asked = config.evaluate.samples if samples is None else samples
    scores = None if judge is None else ProcessJudge(judge)
    settings = {
        "models": {n: {"weights": m.weights, "step": m.step, **engine_setting(m.config)} for n, m in models.items()},
        "tasks": {"source": held_out_of(config), "mark": marks[first]},
        "harnesses": {name: _described(rollout) for name, rollout in made.items()},
        "judge": judge,
        "samples": asked,
        "seed": config.seed,
    }
    if out is not None:
        check(out, settings)
    reporter = Reporter(as_json)
    total = len(models) * len(made) * len(splits[first])
    with reporter.progress("harnesses", total) as tick:
        found = compare_harnesses(
            splits[first],
            {name: model.open for name, model in models.items()},
            made,
            judge=scores,
            samples=asked,
            seed=config.seed,
            progress=lambda done, _: tick(done),
            kept=(lambda m, h, make: make()) if out is None else _kept(out, settings),
        )
    return _shown(found, out, as_json)


def again(folder: Path, as_json: bool) -> int:
    """Show a comparison that is in ``folder``; nothing is run.

    Raises:
        RunError: it cannot be read.
    """
    from assay.evaluate.harnesses import HarnessComparison

    try:
        data = json.loads((folder / FOUND).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {folder / FOUND}: {error}") from None
    return _shown(HarnessComparison.from_document(data), None, as_json)


def _rollout(name: str, config: Any, trace: bool) -> Any:
    """Return a harness, in the environment that the tasks are of."""
    from assay.engines.base import Sampling
    from assay.registry import build
    from assay.tasks.configured import held_out_of

    spec = config.method.rollout
    given = {k: v for k, v in spec.items() if k != "command"} if _is_harness(spec) else {}
    source = held_out_of(config)
    if isinstance(source, list):  # harnesses work in one environment; tasks of others are refused by it
        source = source[0]
    table = {"name": source} if isinstance(source, str) else dict(source)
    home = {"environment": table.get("environment"), "workspaces": "workspace"}.get(table["name"])
    rollout, measured = config.rollout, config.evaluate
    sampling = Sampling(rollout.max_tokens, measured.temperature, measured.top_p, stop=tuple(rollout.stop))
    options = {"environment": home, **given, "name": "harness", "command": name, "trace": True}
    return build("rollout", options, sampling=sampling)


def _is_harness(spec: Any) -> bool:
    return isinstance(spec, Mapping) and spec.get("name") == "harness"


def _described(rollout: Any) -> dict[str, Any]:
    command = [part for part in rollout.command if "/" not in part] if rollout.own else rollout.command
    limits = {"turns": rollout.turns, "seconds": rollout.seconds, "environment": rollout.environment}
    return {"command": command, "sampling": asdict(rollout.sampling), **limits}


def _kept(out: Path, settings: Mapping[str, Any]) -> Callable[[str, str, Callable[[], list[Run]]], list[Run]]:
    """Return what stores the runs of each model under each harness, and finds them again."""
    from assay.evaluate.harnesses import Run
    from assay.evaluate.strategies.folder import StrategyFolder
    from assay.records.files import write_text

    folder = StrategyFolder.create(out, settings)

    def kept(model: str, harness: str, make: Callable[[], list[Run]]) -> list[Run]:
        name = hashlib.sha256(json.dumps([model, harness]).encode()).hexdigest()[:16]
        path = folder.path / "parts" / f"{name}.json"
        if path.is_file():
            try:
                return [Run(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
            except (OSError, ValueError, TypeError) as error:
                raise RunError(f"{path} is damaged ({error}); remove it, and the same command goes on") from None
        runs = make()
        write_text(path, json.dumps([asdict(run) for run in runs]))
        return runs

    return kept


def _shown(found: HarnessComparison, out: Path | None, as_json: bool) -> int:
    from assay.records.files import write_text

    document = found.document()
    if out is not None:
        try:
            write_text(out / FOUND, json.dumps(document, indent=1))
        except OSError as error:
            raise RunError(f"could not write into {out}: {error.strerror or error}") from None
    if as_json:
        print(json.dumps(document))
    else:
        for line in _lines(document):
            say(line)
        if out is not None:
            print(out / FOUND)
    if found.runs and not any(run.completed for run in found.runs):
        raise RunError(f"nothing was judged: all {len(found.runs)} runs abstained; the first: {found.runs[0].feedback}")
    return 0


def _lines(document: Mapping[str, Any]) -> list[str]:
    columns = ("model", "harness", "done", "passed", "outcome", "process", "combined", "tokens", "requests", "seconds")
    rows = [columns]
    for row in document["rows"]:
        means = [_number(row[name] and row[name]["value"]) for name in ("passed", "outcome", "process", "combined")]
        if row["judged"] == 0:
            means[2] = "not judged"
        tokens = f"{row['read']:.0f}+{row['written']:.0f}"
        took = (tokens, f"{row['requests']:.1f}", f"{row['seconds']:.1f}")
        rows.append((row["model"], row["harness"], _number(row["completion"]), *means, *took))
    out = _table(rows)
    for row in document["rows"]:
        if row["failures"]:
            told = ", ".join(f"{name} {count}" for name, count in row["failures"].items())
            out.append(f"{row['model']}, {row['harness']}: {told}")
    effects = document["effects"]["combined"]
    if effects is None:
        return [*out, "fewer than two tasks were judged everywhere: no effects"]
    out += [
        "",
        f"combined, over {effects['tasks']} tasks: {effects['grand']:.3f} in the mean; effects with 95% intervals",
    ]
    names = {"models": document["models"], "harnesses": document["harnesses"]}
    lines: list[tuple[str, ...]] = []
    for kind, those in names.items():
        lines += [
            (f"{kind[:-1] if kind == 'models' else 'harness'} {n}", _interval(i))
            for n, i in zip(those, effects[kind], strict=True)
        ]
    for model, cells in zip(document["models"], effects["interaction"], strict=True):
        lines += [(f"{model} x {h}", _interval(i)) for h, i in zip(document["harnesses"], cells, strict=True)]
    lines += [(f"spread of {m}", _interval(i)) for m, i in zip(document["models"], effects["spread"], strict=True)]
    squares = effects["squares"]
    shares = ", ".join(f"{name} {squares[name]:.4g}" for name in ("models", "harnesses", "interaction"))
    return [*out, *_table(lines), f"sums of squares: {shares}; total {squares['total']:.4g}"]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['value']:+.3f}  {found['low']:+.3f} to {found['high']:+.3f}"
