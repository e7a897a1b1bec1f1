"""A comparison of strategies at test time as a table, and as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.evaluate.strategies.comparison import Comparison
from assay.records.files import write_text
from assay.report import format as show
from assay.report.cost_chart import CostLine, cost_chart, cost_legend
from assay.report.page import template
from assay.statistics.intervals import Interval

COLUMNS = ("strategy", "budget", "tokens", "scoring", "accuracy", "95% interval", "against the first", "abstains")


def render(comparison: Comparison) -> str:
    """The page as text; every value is escaped by the template."""
    rows = comparison.rows()
    lines = []
    for name in comparison.strategies:
        mine = [r for r in rows if r["strategy"] == name and r["accuracy"] is not None]
        lines.append(
            CostLine(
                name,
                [Interval(**r["tokens"]) for r in mine],
                [Interval(**r["accuracy"]) for r in mine],
                [f", budget {r['budget']}" for r in mine],
            )
        )
    return str(
        template("assay.report", "strategies.html.j2").render(
            model=comparison.model,
            tasks=len(comparison.points[0].outcomes),
            chart=cost_chart(lines),
            legend=cost_legend([line.label for line in lines]),
            first=comparison.strategies[0],
            rows=[_cells(r) for r in rows],
            abstaining=any(r["answered"] not in (None, 1.0) for r in rows),
            undecided=sum(r["undecided"] for r in rows),
            unscored=sum(r["unscored"] for r in rows),
            show=show,
        )
    )


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Write ``strategies.json`` and ``strategies.html`` into a folder, which is made if need be; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "strategies.json", folder / "strategies.html"]
    for path, text in zip(paths, (comparison.to_json(), render(comparison)), strict=True):
        write_text(path, text)
    return paths


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return rows of words for :data:`COLUMNS`."""
    out = []
    for row in comparison.rows():
        c = _cells(row)
        said = f", {c['verdict']}" if c["verdict"] in ("better", "worse") else ""
        against = f"{c['difference']} {c['range']}{said}" if c["difference"] else ""
        columns = ("strategy", "budget", "tokens", "scoring", "accuracy", "interval")
        out.append((*(c[k] for k in columns), against, c["abstains"]))
    return out


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """What is shown of a point."""
    accuracy, difference, precision, honesty = (row[k] for k in ("accuracy", "difference", "precision", "honesty"))
    return {
        "strategy": row["strategy"],
        "budget": row["budget"],
        "tokens": show.number(row["tokens"]["value"], 4),
        "scoring": show.number(row["scoring"], 4),
        "accuracy": show.percent(accuracy and accuracy["value"]),
        "interval": _percents(accuracy),
        "difference": show.points(difference["value"]) if difference else "",
        "range": _points(difference),
        "verdict": row["verdict"] or "",
        "abstains": show.percent(None if row["answered"] is None else 1 - row["answered"]),
        "precision": show.percent(precision and precision["value"]),
        "precisions": _percents(precision),
        "honesty": show.points(honesty["value"]) if honesty else show.MISSING,
        "honesties": _points(honesty),
    }


def _percents(found: dict[str, float] | None) -> str:
    return f"{show.percent(found['low'])} to {show.percent(found['high'])}" if found else ""


def _points(found: dict[str, float] | None) -> str:
    return f"[{show.points(found['low'])}, {show.points(found['high'])}]" if found else ""
