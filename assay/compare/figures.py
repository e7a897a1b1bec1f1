"""The figures of a comparison, as inline SVG for the page and as PNG files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from assay.records.files import write_file
from assay.records.png import png
from assay.report.format import MINUS, percent, points
from assay.report.svg import HEIGHT, WIDTH, Series, line_chart, ticks
from assay.report.values import values_table

MOST = 6
"""Methods in a figure, one for each colour: the best by interquartile mean."""
ROW, LEFT, RIGHT, NUMBERS = 30, 170, 14, 178
"""Of the interval chart, in the units of its view box."""
ROOM = 16


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: file name, title, what it shows, drawing, its key as ``(label, colour)``, and the table of its values
    where no other table of the page has them."""

    name: str
    title: str
    note: str
    svg: str
    key: Sequence[tuple[str, int]]
    values: str = ""


def figures(record: Mapping[str, Any]) -> list[Figure]:
    """Return every figure of a record; a method has one colour in all."""
    methods = record["methods"]
    shown = sorted(methods, key=lambda m: -methods[m]["iqm"]["value"])[:MOST]
    colours = {m: i for i, m in enumerate((m for m in methods if m in shown), 1)}
    left = f" The {MOST} best of {len(methods)} methods." if len(methods) > MOST else ""
    key = list(colours.items())

    def lines(data: Mapping[str, Any], scale: float = 1.0) -> list[Series]:
        x = [scale * v for v in data["x"]]
        return [Series(m, x, data[m]["value"], data[m]["low"], data[m]["high"], colour=c) for m, c in colours.items()]

    ks = {**record["pass_at"], "x": [math.log2(k) for k in record["pass_at"]["x"]]}
    top = math.floor(ks["x"][-1])
    band = "Interquartile mean over seeds and tasks, with its 95% bootstrap interval."
    out = [
        Figure(
            "scores",
            "Scores",
            "Interquartile mean of all runs with its 95% bootstrap interval; a small dot is a run." + left,
            interval_chart(
                [
                    (m, methods[m]["iqm"], [v for row in methods[m]["scores"] for v in row], c)
                    for m, c in colours.items()
                ],
                percent,
            ),
            [],
        ),
        *(
            Figure(
                f"curves_{unit}",
                f"Held-out pass@1 against {unit}",
                band + left,
                *_drawn(lines(record["curves"][unit]), f"{unit} sampled", key),
            )
            for unit in sorted(record["curves"], key=lambda unit: unit != record["plan"]["budget"]["unit"])
        ),
        Figure(
            "profile",
            "Performance profile",
            "Share of runs with a score above each value, with its pointwise 95% interval." + left,
            *_drawn(lines(record["profile"], 100), "score above, %", key),
        ),
        Figure(
            "pass_at_k",
            "pass@k where the budget is spent",
            band + left,
            *_drawn(lines(ks), f"log₂ k: 0 is pass@1, {top} pass@{2**top}", key),
        ),
        Figure(
            "differences",
            "Differences, in points",
            "Mean over paired seeds with Student's 95% interval, each pair by itself.",
            interval_chart(
                [
                    (f"{p['a']} {MINUS} {p['b']}", p["difference"], [], 6 if p["verdict"] == "not told apart" else 3)
                    for p in record["pairs"]
                ],
                points,
                zero=True,
            ),
            [],
        ),
    ]
    return [figure for figure in out if figure.svg]


def _drawn(
    series: Sequence[Series], x_label: str, key: Sequence[tuple[str, int]]
) -> tuple[str, Sequence[tuple[str, int]], str]:
    """A line chart of shares, with room for a long number at the end of its axis; its key and its table."""
    svg = line_chart(series, share=True, x_label=x_label, floor=0, ceiling=1)
    svg = svg.replace(f'viewBox="0 0 {WIDTH} {HEIGHT}"', f'viewBox="0 0 {WIDTH + ROOM} {HEIGHT}"', 1)
    return svg, key, values_table(series, share=True, x_label=x_label)


def interval_chart(
    rows: Sequence[tuple[str, Mapping[str, float], Sequence[float], int]], words: Any, zero: bool = False
) -> str:
    """Return an ``<svg>`` with a line for each ``(label, value with low and high, single values, colour)``.

    Args:
        words: writes a value.
        zero: zero is on the axis, marked.
    """
    every = [v for _, i, dots, _ in rows for v in (i["low"], i["high"], *dots)] + ([0.0] if zero else [])
    marks = ticks(min(every), max(every), 5)
    low, high = min(marks[0], *every), max(marks[-1], *every)
    width, height = 2 * WIDTH, ROW * len(rows) + 26

    def px(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (width - LEFT - RIGHT - NUMBERS)

    told = escape("; ".join(f"{label} {words(v['value'])}" for label, v, _, _ in rows))
    out = [f'<svg viewBox="0 0 {width} {height}" role="img" class="chart" aria-label="{told}">']
    for mark in marks:
        kind = "axis" if zero and abs(mark) < 1e-12 else "grid"
        out.append(f'<line class="{kind}" x1="{px(mark):.1f}" x2="{px(mark):.1f}" y1="0" y2="{height - 22}"/>')
        out.append(f'<text class="tick" text-anchor="middle" x="{px(mark):.1f}" y="{height - 6}">{words(mark)}</text>')
    for i, (label, value, dots, colour) in enumerate(rows):
        y = ROW * (i + 0.5)
        ends = f'x1="{px(value["low"]):.1f}" x2="{px(value["high"]):.1f}" y1="{y}" y2="{y}"'
        short = label if len(label) <= 26 else label[:25] + "…"
        numbers = f"{words(value['value'])} [{words(value['low'])}, {words(value['high'])}]"
        out.append(
            f"<g><title>{escape(label)}: {numbers}</title>"
            f'<text class="tick" text-anchor="end" x="{LEFT - 10}" y="{y + 4}">{escape(short)}</text>'
            f'<line class="whisker c{colour}" {ends}/>'
            f'<circle class="point c{colour}" cx="{px(value["value"]):.1f}" cy="{y}" r="5"/>'
            + "".join(f'<circle class="run c{colour}" cx="{px(v):.1f}" cy="{y + 9}" r="2.2"/>' for v in dots)
            + f'<text class="tick" x="{width - NUMBERS + 4}" y="{y + 4}">{numbers}</text></g>'
        )
    return "".join(out) + "</svg>"


def write_png(figure: Figure, path: Path, zoom: float = 2.5) -> None:
    """Draw a figure with its title and key into a PNG file, light, with the fonts of the system.

    Raises:
        UsageError: resvg is not installed.
    """
    found = re.match(r'<svg viewBox="0 0 (\d+) (\d+)"', figure.svg)
    width, height = (int(found[1]), int(found[2])) if found else (WIDTH, HEIGHT)
    key, x, y = [], 10.0, 44
    for label, colour in figure.key:
        room = 34 + 6.2 * len(label)
        if x + room > width and x > 10:
            x, y = 10.0, y + 16
        key.append(f'<line class="line c{colour}" x1="{x}" x2="{x + 14}" y1="{y - 4}" y2="{y - 4}"/>')
        key.append(f'<text class="tick" x="{x + 20}" y="{y}">{escape(label)}</text>')
        x += room
    top = y + 8 if figure.key else 32
    inner = figure.svg.replace("<svg ", f'<svg x="0" y="{top}" width="{width}" height="{height}" ', 1)
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + height}" width="{width}" '
        f'height="{top + height}"><text class="title" x="10" y="22">{escape(figure.title)}</text>'
        f"{''.join(key)}{inner}</svg>"
    )
    data = png(whole, _sheet(), zoom)
    write_file(path, lambda p: p.write_bytes(data))


def _sheet() -> str:
    """The page's style, as far as drawings need it, in plain colours: a renderer of SVG alone knows no variables."""
    text = resources.files("assay.report").joinpath("style.css").read_text(encoding="utf-8")
    light = dict(reversed(re.findall(r"--([\w-]+):\s*(#\w+)", text)))
    sheet = [
        "svg { font-family: sans-serif; }",
        f".tick {{ font-size: 11px; fill: {light['soft']}; }}",
        f".title {{ font-size: 14px; font-weight: 600; fill: {light['ink']}; }}",
        f".grid {{ stroke: {light['edge']}; stroke-width: 1; }}",
        f".axis {{ stroke: {light['soft']}; stroke-width: 1; }}",
        ".line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }",
        *(
            f".line.c{i} {{ stroke-dasharray: {dash}; }}"
            for i, dash in re.findall(r"\.line\.c(\d) \{ stroke-dasharray: ([\d .]+);", text)
        ),
        ".band { opacity: .13; } .run { opacity: .45; } .whisker { stroke-width: 1.6; }",
        ".at { display: none; }",
    ]
    for i in range(1, 7):
        colour = light[f"c{i}"]
        sheet.append(f".c{i}.line, .c{i}.whisker {{ stroke: {colour}; }}")
        sheet.append(f".c{i}.band, .c{i}.point, .c{i}.run {{ fill: {colour}; }}")
    return "\n".join(sheet)
