"""A comparison as one self-contained HTML page, as a table of words, and as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay.catalogue import find
from assay.compare.figures import figures, write_png
from assay.errors import UsageError
from assay.records.files import write_text
from assay.report import format as show
from assay.report.page import clip, template

_PAPER = re.compile(r"S\d{3}")
COLUMNS = ("method", "IQM", "95% interval", "mean", "rollouts", "tokens", "setting")


def write(record: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``compare.html`` and, where resvg is installed, a PNG file for each figure; return the paths."""
    drawn = figures(record)
    paths = [folder / "compare.html"]
    write_text(paths[0], render(record, folder))
    if find_spec("resvg_py") is not None:
        for figure in drawn:
            paths.append(folder / f"{figure.name}.png")
            write_png(figure, paths[-1])
    return paths


def render(record: Mapping[str, Any], folder: Path | None = None) -> str:
    """The page as text; every value is escaped by the template. It links to the reports of those runs that are in
    ``folder``."""
    plan = record["plan"]
    recipe = {**plan["recipe"], "tasks": {k: v for k, v in plan["recipe"]["tasks"].items() if k != "source"}}
    return str(
        template("assay.compare", "compare.html.j2").render(
            record=record,
            plan=plan,
            rows=rows(record),
            pairs=[_pair(p) for p in record["pairs"]],
            runs=_runs(record, folder),
            title=", ".join(map(named, record["methods"])),
            named=named,
            figures=[(f, list(f.key)) for f in figures(record)],
            tried={m: [(_values(t["values"]), t["mean"]) for t in tried] for m, tried in record["tried"].items()},
            chosen={m: _values(c or {}) for m, c in record["chosen"].items()},
            settings=[(k, json.dumps(v)) for k, v in recipe.items()],
            clip=clip,
            show=show,
        )
    )


def rows(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the table says of each method, the best first."""
    out = []
    for name, m in sorted(record["methods"].items(), key=lambda item: -item[1]["iqm"]["value"]):
        out.append(
            {
                "method": named(name),
                "iqm": show.percent(m["iqm"]["value"]),
                "interval": f"{show.percent(m['iqm']['low'])} to {show.percent(m['iqm']['high'])}",
                "mean": show.percent(m["mean"]),
                "rollouts": _span(m["rollouts"]),
                "tokens": _span(m["tokens"]),
                "steps": _span(m["steps"]),
                "seconds": show.duration(m["seconds"]),
                "abstained": show.percent(m["abstained"]),
                "setting": _values(record["chosen"][name] or {}),
            }
        )
    return out


def named(method: str) -> str:
    """A method as a table calls it: a paper's id with its name."""
    with suppress(UsageError):
        return f"{method} {find(method).name}" if _PAPER.fullmatch(method) else method
    return method  # a label of one's own that looks like an id


def _runs(record: Mapping[str, Any], folder: Path | None) -> list[dict[str, str]]:
    """Each run that counts: what it is, its score, and the way to its report from the folder, if it is there."""
    out = []
    for run in record["runs"]:
        place = Path("runs") / run["task"] / f"seed-{run['seed']}" / run["method"] / "run" / "report.html"
        there = folder is not None and (folder / place).is_file()
        score = show.percent(run[record["plan"]["measure"]]) if run["status"] == "finished" else run["status"]
        told = {"method": named(run["method"]), "task": run["task"], "seed": str(run["seed"]), "score": score}
        out.append({**told, "report": quote(place.as_posix()) if there else ""})
    return out


def words(record: Mapping[str, Any]) -> list[str]:
    """The table and the verdict, in lines."""
    keys = ("method", "iqm", "interval", "mean", "rollouts", "tokens", "setting")
    cells = [COLUMNS, *(tuple(row[k] for k in keys) for row in rows(record))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(COLUMNS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.append("")
    for p in map(_pair, record["pairs"]):
        improved = f"{p['a']} beats {p['b']} with probability {p['improvement']} {p['chance']}"
        lines.append(f"{p['a']} against {p['b']}: {p['difference']} {p['range']} points, {improved}; {p['verdict']}")
    lines += ["", *record["verdict"]]
    lines += [f"failed: {name}: {error}" for name, error in record["failed"].items()]
    return lines


def _pair(p: Mapping[str, Any]) -> dict[str, str]:
    d, chance = p["difference"], p["improvement"]
    more = (
        "–" if p["verdict"] != "not told apart" else "over 1,000" if p["more_seeds"] is None else str(p["more_seeds"])
    )
    return {
        "a": named(p["a"]),
        "b": named(p["b"]),
        "difference": show.points(d["value"]),
        "range": f"[{show.points(d['low'])}, {show.points(d['high'])}]",
        "p": show.number(p["adjusted"], 2),
        "improvement": f"{chance['value']:.2f}",
        "chance": f"[{chance['low']:.2f}, {chance['high']:.2f}]",
        "flip": show.number(p["flip"], 2),
        "verdict": p["verdict"],
        "more": more,
    }


def _span(ends: list[int]) -> str:
    """The least and the most a run spent, once if they are the same."""
    return "–".join(dict.fromkeys(map(show.count, ends)))


def _values(choice: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} = {v:g}" if isinstance(v, float) else f"{k} = {v}" for k, v in choice.items())
