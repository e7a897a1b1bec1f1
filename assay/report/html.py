"""The report of a run: one self-contained HTML page, no script and no network."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import RunError, UsageError
from assay.evaluate import Evaluation, Sample, difference
from assay.records.evaluation import ladder
from assay.records.files import disk_failure
from assay.records.judging import looks
from assay.records.sign import TITLES
from assay.records.stages import stages
from assay.report import format as show
from assay.report.links import run_links
from assay.report.page import clip, shown, template
from assay.report.run import Rollout, Run, as_float, read_run
from assay.report.svg import Series, drawable, legend, line_chart, stacked_bar
from assay.report.values import values_table

NBSP = "\u00a0"
PER_KIND = 2
"""Tasks shown for each kind of change (gained, lost, still wrong, still right)."""
COLOURS = 6
"""Lines of a chart."""
EXTREMES = 3
"""Rollouts shown at either end of the reward."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A titled chart with its key and the table of what it draws."""

    title: str
    note: str
    svg: str
    legend: str
    values: str


def write_report(run: Path) -> Path:
    """Write ``report.html`` into the run folder and return its path.

    Whatever the folder lacks is named in the report. The file appears whole or not at all.

    Raises:
        UsageError: the folder is not a run.
        RunError: the file cannot be written.
    """
    path = run / "report.html"
    page = render(read_run(run))
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_text(page, encoding="utf-8", errors="replace")
        os.replace(partial, path)
    except OSError as error:
        raise RunError(
            f"could not write {path}: {disk_failure(error)}; mend that and run: assay report {run}"
        ) from None
    finally:
        with contextlib.suppress(OSError):  # of a folder that cannot be written there is nothing to remove
            partial.unlink(missing_ok=True)
    return path


def render(run: Run) -> str:
    """The page as text; every value of the run is escaped by the template."""
    start, end = main_evaluations(run)
    steps = run.metrics["rl"]
    return str(
        template("assay.report", "report.html.j2").render(
            name=run.path.resolve().name,
            path=run.path,
            notes=run.notes,
            state=_state(run, end),
            headline=_headline(run, start, end),
            tiles=_tiles(run, start, end),
            training=_charts(run, "rl"),
            warmup=_charts(run, "warmup"),
            steps=len(steps),
            time=_time(run),
            pairs=_pairs(start, end),
            start=start,
            end=end,
            links=run_links(run),
            signs=run.signs,
            stages=_stages(run),
            titles=list(TITLES.values()),
            extremes=_extremes(run.rollouts),
            config=run.config,
            environment=_flat(run.environment),
            clip=clip,
            shown=shown,
            show=show,
        )
    )


def main_evaluations(run: Run) -> tuple[Evaluation | None, Evaluation | None]:
    """The evaluation RL started from and the latest one after it, either ``None`` if there is none."""
    start = run.evaluation("before") or run.evaluation("initial")
    later = [e for e in run.evaluations if e.label not in ("initial", "before")]
    return start, run.evaluation("after") or (later[-1] if later else None)


def _state(run: Run, end: Evaluation | None) -> str:
    """One sentence if the run has not come to its end."""
    if end is not None and end.label == "after":
        return ""
    rows = run.metrics["rl"]
    reached = f"training has reached step {show.count(rows[-1]['step'])}" if rows else "no RL step has been recorded"
    latest = (
        f"the latest evaluation is at step {show.count(end.step)}" if end else "nothing was evaluated since RL began"
    )
    return f"This run has no final evaluation (interrupted, or still going): {reached}; {latest}."


def _stages(run: Run) -> list[dict[str, Any]]:
    """The run's stages, each with held-out pass@1 at its end where that was measured."""
    found = stages(run.path, run.metrics["rl"])
    for stage in found:
        end = run.evaluation("after" if stage is found[-1] else f"after-{stage['name']}")
        interval = None if end is None else end.pass_interval(1)
        stage["end"] = "" if interval is None else str(interval)
    return found


def _name(e: Evaluation) -> str:
    """What people call an evaluation."""
    known = {"initial": "Initial", "before": "Before RL", "after": "After RL"}
    return known.get(e.label, f"Step {show.count(e.step)}" if e.label.startswith("step-") else e.label)


def _headline(run: Run, start: Evaluation | None, end: Evaluation | None) -> dict[str, Any] | None:
    """The table of pass@k: a column per main evaluation, and the paired differences between them."""
    columns = [e for e in dict.fromkeys((run.evaluation("initial"), start, end)) if e is not None]
    if not columns:
        return None
    measured = [e.metrics() for e in columns]
    pairs = list(itertools.pairwise(columns))
    rows = []
    for k in ladder(max(e.k for e in columns)):
        key = f"pass@{k}"
        cells = [(show.percent(m.get(key)), _range(m.get(f"{key}/low"), m.get(f"{key}/high"))) for m in measured]
        rows.append((key, cells, [_change(a, b, k) for a, b in pairs]))
    parts = [e.by_source() for e in columns]
    for source in parts[-1]:
        key = f"{source}/pass@1"
        cells = [(show.percent(m.get(key)), _range(m.get(f"{key}/low"), m.get(f"{key}/high"))) for m in measured]
        both = [(a[source], b[source]) if source in a else None for a, b in itertools.pairwise(parts)]
        rows.append((f"pass@1 of {source}", cells, [_change(*two, 1) if two else ("", "", "") for two in both]))
    for key, label, write in (
        ("score/mean", "mean score", show.number),
        ("length/mean", "mean length (tokens)", show.number),
        ("truncated", "truncated", show.percent),
        ("abstained", "verifier abstained", show.percent),
    ):
        rows.append((label, [(write(m.get(key)), "") for m in measured], [("", "", "") for _ in pairs]))
    return {
        "columns": [(_name(e), f"step {show.count(e.step)}") for e in columns],
        "changes": [f"{_name(a)} → {_name(b)}" for a, b in pairs],
        "rows": rows,
        "tasks": show.count(measured[-1]["tasks"]),
        "samples": columns[-1].k,
        "abstained": any(m.get("abstained", 0) > 0 for m in measured),
    }


def _change(a: Evaluation, b: Evaluation, k: int) -> tuple[str, str, str]:
    """Difference in points, its interval, and the class that says whether it excludes zero."""
    try:
        found = difference(a, b, k).interval
    except UsageError as error:
        return show.MISSING, str(error), ""
    kind = "gain" if found.low > 0 else "loss" if found.high < 0 else "even"
    return show.points(found.value), f"[{show.points(found.low)},{NBSP}{show.points(found.high)}]", kind


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.1f},{NBSP}{100 * high:.1f}]"


def _tiles(run: Run, start: Evaluation | None, end: Evaluation | None) -> list[tuple[str, str, str]]:
    """The few numbers at the top: ``(label, value, note)``."""
    out = []
    if start is not None and end is not None:
        for k in dict.fromkeys((1, min(start.k, end.k))):
            a, b = start.pass_interval(k), end.pass_interval(k)
            if a is not None and b is not None:
                value, interval, _ = _change(start, end, k)
                comparable = value != show.MISSING
                note = f"{value} points, 95%{NBSP}{interval}" if comparable else interval
                out.append((f"pass@{k}", f"{show.percent(a.value)} → {show.percent(b.value)}", note))
    rows = run.metrics["rl"]
    if rows:
        warm = len(run.metrics["warmup"])
        note = f"after {show.count(warm)} warm-up steps" if warm else ""
        out.append(("RL steps", show.count(rows[-1]["step"]), note))
    if run.signs:
        seen = "; ".join(f"{s.title} after step {show.count(s.step)}" for s in run.signs)
        out.append(("signs of a gamed reward", show.count(len(run.signs)), seen))
    times = [t for stage in run.metrics.values() for row in stage if math.isfinite(t := as_float(row.get("time")))]
    if times:
        per_step = [v for v in run.column("rl", "time/step")[1] if math.isfinite(v)]
        note = f"{show.duration(sum(per_step) / len(per_step))} per RL step" if per_step else ""
        out.append(("time", show.duration(max(times)), note))
    return out


def _charts(run: Run, stage: str) -> tuple[list[Chart], list[str]]:
    """Every chart that has something to show; and in words what never changed, which needs none."""

    def lines(*keys: str, **names: str) -> list[Series]:
        found: list[Series] = []
        for key, label in [*((k, k) for k in keys), *names.items()]:
            x, y = run.column(stage, key)
            if x:
                found.append(Series(label, x, y, colour=len(found) + 1))
        return found

    wanted: list[tuple[str, str, list[Series], dict[str, Any]]] = []
    share = {"share": True, "floor": 0.0, "ceiling": 1.0}
    if stage == "rl":
        terms = sorted(
            {k for row in run.metrics["rl"] for k in row if k.startswith("reward/")} - {"reward/mean", "reward/std"}
        )
        agreement = lines(verdict_correlation="correlation", hollow_wins="wins without a better verdict")
        divergence = lines(**{"kl/ref": "to the reference", "kl/behaviour": "to the sampler"})
        wanted += [
            ("Reward", "mean over the step's samples; band: one standard deviation", _reward(run), {}),
            ("Pass rate", "training samples, and pass@1 of the evaluations with 95% intervals", _pass_rate(run), share),
            (
                "Judging of steps",
                "F1 where the first wrong step is known, beside pass@1",
                _judging(run),
                share,
            ),
            *(
                (
                    f"Reward terms{f', {i + 1} on' if i else ''}",
                    "mean of each",
                    lines(**{k: k.removeprefix("reward/") for k in terms[i : i + COLOURS]}),
                    {},
                )
                for i in range(0, len(terms), COLOURS)
            ),
            ("Response length", "tokens", lines(**{"length/mean": "mean", "length/max": "longest"}), {"floor": 0.0}),
            ("Entropy", "nats per token", lines("entropy"), {"floor": 0.0}),
            ("KL divergence", "nats per token", divergence, {}),
            ("Clipped tokens", "share", lines("clip_fraction"), share),
            ("Gradient norm", "before clipping", lines("grad_norm"), {"floor": 0.0}),
            ("Groups without variance", "share that teaches nothing", lines("groups/zero_variance"), share),
            ("Repetition", "share of a response said before in it", lines("repetition"), share),
            ("Reward and verdict", "over samples, and over rewards above their prompt's mean", agreement, {}),
            ("Cut off, abstained, unmarked", "share of samples", lines("truncated", "abstained", "unmarked"), share),
        ]
    wanted += [
        ("Loss", "", lines("loss"), {}),
        ("Learning rate", "", lines("lr"), {"floor": 0.0}),
    ]
    if stage == "warmup":
        wanted.append(("Gradient norm", "before clipping", lines("grad_norm"), {"floor": 0.0}))
    wanted.append(("Throughput", "tokens per second", lines("tokens_per_second"), {"floor": 0.0}))
    drawn, flat = [], []
    for title, note, series, how in wanted:
        if values := _constant(series):
            show_value = show.percent if how.get("share") else show.number
            flat.append(f"{title}: {', '.join(f'{label} {show_value(v)}'.strip() for label, v in values)}")
        elif svg := line_chart(series, title, **how):
            table = values_table(series, share=how.get("share", False))
            drawn.append(Chart(title, note, svg, legend(series), table))
    return drawn, flat


def _constant(series: list[Series]) -> list[tuple[str, float]]:
    """Label (empty for a single line) and value of lines that never change; nothing if one of them does."""
    found = [{y for y in s.y if drawable(y)} for s in series]
    if any(len(values) != 1 or s.points or s.low is not None for s, values in zip(series, found, strict=True)):
        return []
    return [(s.label if len(series) > 1 else "", values.pop()) for s, values in zip(series, found, strict=True)]


def _reward(run: Run) -> list[Series]:
    x, mean = run.column("rl", "reward/mean")
    if not x:
        return []
    std = run.column("rl", "reward/std")[1]
    if not std:
        return [Series("reward", x, mean)]
    low = [m - s for m, s in zip(mean, std, strict=True)]
    high = [m + s for m, s in zip(mean, std, strict=True)]
    return [Series("reward", x, mean, low, high)]


def _pass_rate(run: Run) -> list[Series]:
    out = []
    x, y = run.column("rl", "pass_rate")
    if x:
        out.append(Series("training", x, y, colour=1))
    start, _ = main_evaluations(run)
    shown = {e.step: e for e in run.evaluations if e.label != "initial" or e is start}
    found = [(float(step), i) for step, e in sorted(shown.items()) if (i := e.pass_interval(1)) is not None]
    if found:
        steps, intervals = [s for s, _ in found], [i for _, i in found]
        low, high = [i.low for i in intervals], [i.high for i in intervals]
        out.append(Series("evaluation", steps, [i.value for i in intervals], low, high, points=True, colour=2))
    return out


def _judging(run: Run) -> list[Series]:
    """How the policy judged steps at the evaluations, if the run looked."""
    out: list[Series] = []
    for key, label in (("f1", "judging"), ("pass@1", "solving")):
        found = [(float(row["step"]), as_float(row.get(key))) for row in looks(run.path)]
        if any(math.isfinite(y) for _, y in found):
            out.append(Series(label, [x for x, _ in found], [y for _, y in found], points=True, colour=len(out) + 1))
    return out if out and out[0].label == "judging" else []


def _time(run: Run) -> dict[str, Any] | None:
    """How the steps' time was spent; ``None`` without timings."""
    spent: dict[str, float] = {}
    for key, label in (("generate", "generation"), ("verify", "verification"), ("update", "update"), ("step", "all")):
        spent[label] = sum(v for v in run.column("rl", f"time/{key}")[1] if math.isfinite(v))
    parts = {k: v for k, v in spent.items() if k != "all"}
    # Verification may overlap generation, so that the parts can exceed the whole.
    whole = max(spent["all"], sum(parts.values()))
    if whole <= 0:
        return None
    parts["other"] = whole - sum(parts.values())
    rows = [(k, v / whole, f"{show.percent(v / whole)}, {show.duration(v)}") for k, v in parts.items()]
    return {"bar": stacked_bar(rows), "rows": rows, "total": show.duration(whole)}


def _pairs(start: Evaluation | None, end: Evaluation | None) -> list[dict[str, Any]]:
    """Tasks to read side by side: those that changed most either way, and some that did not change; of each side the
    first sample that shows which it is."""
    if start is None or end is None:
        return []
    a, b = start.by_task(), end.by_task()
    before, after = start.pass_at(1), end.pass_at(1)
    shared = [t for t in before if t in after]
    change = {t: after[t] - before[t] for t in shared}
    order = sorted(shared, key=lambda t: -change[t])
    kinds = [
        ("gained", [t for t in order if change[t] > 0], (False, True)),
        ("lost", [t for t in reversed(order) if change[t] < 0], (True, False)),
        ("still wrong", [t for t in shared if before[t] == after[t] == 0], (False, False)),
        ("still right", [t for t in shared if before[t] == after[t] == 1], (True, True)),
    ]
    return [
        {
            "kind": kind,
            "of": show.count(len(tasks)),
            "task": task,
            "prompt": a[task][0].prompt,
            "sides": [
                (_name(e), _tally(rows), next((s for s in rows if s.passed is right), rows[0]))
                for (e, rows), right in zip(((start, a[task]), (end, b[task])), shown, strict=True)
            ],
        }
        for kind, tasks, shown in kinds
        for task in tasks[:PER_KIND]
    ]


def _tally(rows: list[Sample]) -> str:
    judged = [s for s in rows if s.passed is not None]
    left = f", {len(rows) - len(judged)} abstained" if len(judged) < len(rows) else ""
    return f"{sum(s.passed is True for s in judged)} of {len(judged)} right{left}"


def _extremes(rollouts: list[Rollout]) -> list[tuple[str, list[Rollout]]]:
    """The best and the worst rewarded rollouts, no text twice."""
    distinct = {(r.task_id, r.response): r for r in rollouts if r.reward is not None and math.isfinite(r.reward)}
    ordered = sorted(distinct.values(), key=lambda r: -(r.reward or 0.0))
    best = ordered[:EXTREMES]
    worst = ordered[::-1][: min(EXTREMES, len(ordered) - len(best))]
    return [(title, rows) for title, rows in (("Highest reward", best), ("Lowest reward", worst)) if rows]


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested JSON as dotted names and texts."""
    if isinstance(value, dict):
        return [row for k, v in value.items() for row in _flat(v, f"{prefix}.{k}" if prefix else str(k))]
    if isinstance(value, list):
        return [(prefix, ", ".join(map(str, value)))]
    return [(prefix, show.MISSING if value is None else str(value))]
