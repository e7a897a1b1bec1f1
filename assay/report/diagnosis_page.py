"""A diagnosis of training as one self-contained HTML page, and all its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.diagnose.ablation import Aided
from assay.diagnose.change_spectrum import Spectrum
from assay.diagnose.diagnosis import Diagnosis
from assay.evaluate.paired import Change
from assay.records.evaluation import Evaluation
from assay.records.files import write_text
from assay.report import format as show
from assay.report.cost_chart import CostLine, cost_chart, cost_legend, cost_table
from assay.report.diagnosis import (
    aid_rows,
    counts_of,
    crossing_words,
    facts,
    rates,
    row,
    rows,
    spectrum_words,
    summary,
    weight_rows,
)
from assay.report.page import clip, shown, template
from assay.report.svg import Series, legend, line_chart, stacked_bar
from assay.report.values import values_table
from assay.statistics.intervals import Interval


def _curves(d: Diagnosis) -> list[CostLine]:
    x = [Interval(k, k, k) for k in d.ks]
    notes = [f", {k} samples" for k in d.ks]
    return [
        CostLine(label, x, [getattr(c, side) for c in d.curve], notes)
        for label, side in (("before", "before"), ("after", "after"))
    ]


def _reach(d: Diagnosis) -> list[CostLine]:
    """Shares of the tasks; in the order, and so the colours, of the bar."""
    x = [Interval(k, k, k) for k in d.ks]
    notes = [f", {k} samples" for k in d.ks]
    shares = {name: [counts_of(s)[name] / d.tasks for s in d.reach] for name in counts_of(d.support.counts)}
    return [CostLine(name, x, [Interval(v, v, v) for v in shown], notes) for name, shown in shares.items()]


def _beginnings(d: Diagnosis) -> tuple[list[Series], int]:
    """Accuracy against how many chunks of the solution were given, where most tasks have as many; and how many."""
    found: dict[int, list[Aided]] = {}
    for a in d.readings.aids if d.readings else ():
        if a.aid.startswith("solution ") and a.level is None:
            found.setdefault(int(a.aid.rpartition("/")[2]), []).append(a)
    if not found:
        return [], 0
    chunks = max(found, key=lambda n: found[n][0].gain.tasks)
    out = []
    for side, colour in (("before", 1), ("after", 2)):
        points = [getattr(found[chunks][0].without, side), *(getattr(a.with_, side) for a in found[chunks])]
        low, high = [p.low for p in points], [p.high for p in points]
        out.append(Series(side, list(range(len(points))), [p.value for p in points], low, high, False, colour))
    return out, chunks


def _spectrum_lines(s: Spectrum) -> list[Series]:
    x = [0.0, *(100 * share for share in s.shares)]
    return [Series("change", x, [0.0, *s.change], colour=1), Series("weights before", x, [0.0, *s.weights], colour=6)]


def render(d: Diagnosis) -> str:
    """The page as text; every value is escaped by the template."""
    curves, reach = _curves(d), _reach(d)
    begun, chunks = _beginnings(d)
    spectrum = _spectrum_lines(d.spectrum) if d.spectrum else []
    given, leading = f"parts of the solution given, of {chunks}", "leading directions, % of all"
    counts = counts_of(d.support.counts)
    parts = [(name, n / d.tasks, f"{show.count(n)} tasks") for name, n in counts.items()]
    return str(
        template("assay.report", "diagnosis.html.j2").render(
            d=d,
            summary=summary(d),
            tiles=_tiles(d),
            rows=rows(d),
            rates=rates(d),
            counts=counts,
            answer_counts=counts_of(d.answers.counts),
            crossing=crossing_words(d),
            curve=cost_chart(curves, "samples k", "pass@k"),
            curve_values=cost_table(curves, "samples k"),
            curve_legend=cost_legend([line.label for line in curves]),
            reach=cost_chart(reach, "samples k", "share of tasks"),
            reach_values=cost_table(reach, "samples k"),
            reach_legend=cost_legend([line.label for line in reach]),
            bar=stacked_bar(parts),
            begun=line_chart(begun, "Accuracy", share=True, x_label=given, floor=0, ceiling=1),
            begun_values=values_table(begun, share=True, x_label=given),
            begun_legend=legend(begun),
            facts=facts(d.readings) if d.readings else [],
            aids=aid_rows(d) if d.readings else [],
            weights=weight_rows(d) if d.weights is not None else [],
            spectrum=line_chart(spectrum, "Squared norm", share=True, x_label=leading, floor=0, ceiling=1),
            spectrum_values=values_table(spectrum, share=True, x_label=leading),
            spectrum_legend=legend(spectrum),
            spectrum_words=spectrum_words(d.spectrum) if d.spectrum else "",
            clip=clip,
            shown=shown,
            show=show,
        )
    )


def _tiles(d: Diagnosis) -> list[tuple[str, str, str]]:
    """The numbers at the top: ``(label, value, note)``."""

    def moved(c: Change, share: bool) -> tuple[str, str]:
        r = row("", "", c, share)
        return f"{r['before']} → {r['after']}", f"{r['difference']} {r['range']}"

    out = [(f"pass@{k}", *moved(d.curve[j], True)) for j, k in ((0, 1), (len(d.ks) - 1, d.k))]
    out = out[:1] if d.k == 1 else out
    c = d.crossing
    out.append(("before catches up at k", crossing_words(d).split(" [")[0], f"{crossing_words(d)}; {c.verdict}"))
    s = d.support
    out.append(("tasks lost, gained", f"{show.count(s.counts.lost)}, {show.count(s.counts.gained)}", f"of {d.tasks}"))
    out.append(("answer entropy", *moved(d.measures["answer_entropy"], False)))
    if "token_entropy" in d.measures:
        out.append(("token entropy", *moved(d.measures["token_entropy"], False)))
    return out


def write(d: Diagnosis, folder: Path, samples: tuple[Evaluation, Evaluation] | None = None) -> list[Path]:
    """Write ``diagnosis.json``, ``diagnosis.html`` and the samples, if given, into a folder; return the paths.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "diagnosis.json", folder / "diagnosis.html"]
    texts: list[Any] = [d.to_json(), render(d)]
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    for evaluation, name in zip(samples or (), ("before", "after"), strict=False):
        paths.append(folder / f"{name}.parquet")
        evaluation.to_parquet(paths[-1])
    return paths
