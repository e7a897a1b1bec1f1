"""An audit as one self-contained HTML page, in the style of a run's report: no script and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from assay.audit.console import aside_words, attack_words, partial_words, seconds_words, spread, tail, verifier_words
from assay.audit.outcome import UNDECIDED
from assay.report import format as show
from assay.report.page import clip, template

EXAMPLES = 20
"""Mistakes of each kind that are shown; all of them are in ``audit.json``."""
PATTERNS = 15
"""Spellings and near misses that are listed, those that most often go wrong first."""

WIDTH, ROW, LEFT, RIGHT, VALUE = 560, 24, 150, 14, 118


def render(report: Mapping[str, Any]) -> str:
    """The page of a report of :meth:`assay.audit.run.Audit.report`; every value is escaped."""
    clean = report["clean"]
    mistakes = [
        ("Wrong responses accepted", "false positives", report["false_positives"], True),
        ("Right responses rejected", "false negatives", report["false_negatives"], False),
        *((s.replace("_", " ").capitalize(), "no decision", report[s], False) for s in UNDECIDED),
        ("Slowest", "longest calls", report["slowest"], False),
    ]
    return str(
        template("assay.audit", "audit.html.j2").render(
            verifier=report["verifier"],
            name=verifier_words(report["verifier"]),
            state=f"Partial: {partial_words(dict(report))}." if report["partial"] else "",
            report=report,
            clean=clean,
            undecided=[s for s in UNDECIDED if clean[s]],
            tiles=_tiles(report),
            categories=_categories(report["categories"], clean),
            patterns=_patterns(report["patterns"]),
            aside=[aside_words(name, c) for name, c in report["aside"].items()],
            charts=_charts(report["categories"], clean),
            mistakes=[(t, n, spread(e, EXAMPLES) if n != "longest calls" else e, len(e), o) for t, n, e, o in mistakes],
            attack=report["attack"],
            attack_words="" if report["attack"] is None else attack_words(report["attack"]),
            accepted=[] if report["attack"] is None else spread(report["attack"]["accepted"], EXAMPLES, "attack"),
            against=report["against"],
            clip=clip,
            rate=_rate,
            seconds=seconds_words,
            text=_text,
            show=show,
            tail=tail,
        )
    )


def _tiles(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The numbers at the top: ``(label, value, note)``."""
    clean, latency = report["clean"], report["latency"]
    out = []
    for label, key in (("false-negative rate", "false_negative_rate"), ("false-positive rate", "false_positive_rate")):
        value, note = _rate(clean[key])
        out.append((label, value, note))
    undecided = sum(clean[s] for s in UNDECIDED)
    names = ", ".join(f"{show.count(clean[s])} {s.replace('_', ' ')}" for s in UNDECIDED if clean[s])
    out.append(("undecided", show.count(undecided), names or "every response was decided"))
    out.append(("Cohen's kappa", show.number(clean["kappa"]), "with the labels"))
    if report["attack"] is not None:
        attack = report["attack"]
        word = {True: "passes", False: "fails", None: "not known"}[attack["passes"]]
        out.append(
            ("attacks", word, f"{show.count(attack['overall']['count'])} of {show.count(attack['attempts'])} accepted")
        )
    out.append(("latency", seconds_words(latency["p50"]), f"p99 {seconds_words(latency['p99'])}"))
    return out


def _categories(categories: Mapping[str, Any], clean: Mapping[str, Any]) -> list[tuple[str, Any]]:
    rows = list(categories.items()) if len(categories) > 1 else []
    return [*rows, ("all", clean)]


def _patterns(patterns: Mapping[str, Any]) -> list[tuple[str, Any, int]]:
    """Patterns with mistakes and how many, most first."""
    rows = [(name, c, c["fp"] + c["fn"]) for name, c in patterns.items() if c["fp"] + c["fn"]]
    return sorted(rows, key=lambda r: (-r[2] / max(r[1]["decided"], 1), -r[2], r[0]))[:PATTERNS]


def _charts(categories: Mapping[str, Any], clean: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The two error rates by category with their intervals: ``(title, note, svg)``."""
    out = []
    for title, note, key, colour in (
        ("False-negative rate", "right responses rejected", "false_negative_rate", 1),
        ("False-positive rate", "wrong responses accepted", "false_positive_rate", 2),
    ):
        rows = [(name, c[key]) for name, c in _categories(categories, clean) if c[key]["value"] is not None]
        if rows:
            out.append((title, note, interval_chart(rows, colour)))
    return out


def interval_chart(rows: Sequence[tuple[str, Mapping[str, Any]]], colour: int) -> str:
    """Return an ``<svg>`` with a line per rate: its name, a point with its interval on an axis from 0, its value."""
    top = max(r["high"] for _, r in rows)
    # Round up to a tenth, so that small rates are seen and a rate of 1 is at the end.
    limit = next(x for x in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if top <= x or x == 1.0)
    span = WIDTH - LEFT - RIGHT - VALUE
    height = ROW * len(rows) + 22

    def px(share: float) -> float:
        return LEFT + share / limit * span

    out = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" class="chart">']
    for share in (0.0, limit / 2, limit):
        out.append(f'<line class="grid" x1="{px(share):.1f}" x2="{px(share):.1f}" y1="0" y2="{height - 20}"/>')
        label = f"{100 * share:g}%"
        out.append(f'<text class="tick" text-anchor="middle" x="{px(share):.1f}" y="{height - 5}">{label}</text>')
    for i, (name, r) in enumerate(rows):
        y = ROW * (i + 0.5)
        short = name if len(name) <= 22 else name[:21] + "…"
        value, interval = _rate(r)
        out.append(
            f"<g><title>{escape(name)}: {value} {interval}</title>"
            f'<text class="tick" text-anchor="end" x="{LEFT - 10}" y="{y + 4}">{escape(short)}</text>'
            f'<line class="whisker c{colour}" x1="{px(r["low"]):.1f}" x2="{px(r["high"]):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="point c{colour}" cx="{px(r["value"]):.1f}" cy="{y}" r="4.5"/>'
            f'<text class="tick" x="{WIDTH - VALUE + 6}" y="{y + 4}">'
            f"{value} ({show.count(r['count'])} of {show.count(r['total'])})</text></g>"
        )
    return "".join(out) + "</svg>"


def _rate(rate: Mapping[str, Any]) -> tuple[str, str]:
    """A rate and its interval with counts, for two lines of a cell."""
    if rate["value"] is None:
        return show.MISSING, "no rows"
    interval = f"[{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"
    return show.percent(rate["value"]), f"{interval} {show.count(rate['count'])} of {show.count(rate['total'])}"


def _text(value: Any) -> str:
    """A reference as text: as it is, or as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
