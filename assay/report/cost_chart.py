"""Accuracy against cost as inline SVG: a logarithmic axis of tokens, whiskers both ways, a line for each strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from assay.report.format import number, percent
from assay.report.svg import Series, axis_labels, ticks
from assay.report.values import values_table
from assay.statistics.intervals import Interval

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 46
COLOURS = 6


@dataclass(frozen=True, slots=True)
class CostLine:
    """A strategy's points in the order of its budgets.

    Attributes:
        label: what it is called.
        x, y: cost and accuracy, with their intervals.
        notes: what the pointer shows of each.
    """

    label: str
    x: Sequence[Interval]
    y: Sequence[Interval]
    notes: Sequence[str]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten within ``[low, high]``, powers alone where that would be too many.

    Args:
        low, high: above 0.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    many = high / low > 1e4
    found = [m * 10.0**p for p in powers for m in ((1,) if many else (1, 2, 5))]
    return [t for t in found if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]


def marker(shape: int, x: float, y: float, colour: int) -> str:
    """Return a mark: a disc, then a square and a diamond for the lines beyond the palette."""
    if shape == 0:
        return f'<circle class="point c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == 2 else ""
    return f'<rect class="point c{colour}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"{turn}/>'


def style(i: int) -> tuple[int, int]:
    """Return the colour, 1 to 6, and the shape, 0 to 2, of line ``i``."""
    return i % COLOURS + 1, i // COLOURS % 3


def cost_chart(lines: Sequence[CostLine], x_label: str = "tokens per task", y_label: str = "accuracy") -> str:
    """Return an ``<svg>`` of the lines, or an empty string when there are no points."""
    points = [(x, y) for line in lines for x, y in zip(line.x, line.y, strict=True)]
    if not points:
        return ""
    x_low = max(min(max(x.low, x.value / 2) for x, _ in points), 0.5) / 1.08
    x_high = max([1.0, *(x.high for x, _ in points)]) * 1.08
    marks = [t for t in ticks(min(y.low for _, y in points), max(y.high for _, y in points), 6) if -1e-9 <= t <= 1.001]
    y_low, y_high = min([*marks, *(y.low for _, y in points)]), max([*marks, *(y.high for _, y in points)])
    span = (y_high - y_low) or 1.0

    def px(x: float) -> float:
        share = (math.log(max(x, x_low)) - math.log(x_low)) / (math.log(x_high) - math.log(x_low))
        return LEFT + min(share, 1) * (WIDTH - LEFT - RIGHT)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (y - y_low) / span * (HEIGHT - TOP - BOTTOM)

    def text(x: float, y: float, words: str, anchor: str = "middle", turn: str = "") -> str:
        return f'<text class="tick" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}"{turn}>{escape(words)}</text>'

    told = escape(f"{y_label} against {x_label}")
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="chart" aria-label="{told}">']
    for t, label in zip(marks, axis_labels(marks, share=True), strict=True):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(t):.1f}" y2="{py(t):.1f}"/>')
        out.append(text(LEFT - 7, py(t) + 3.5, label, "end"))
    for t in log_ticks(x_low, x_high):
        out.append(f'<line class="grid" x1="{px(t):.1f}" x2="{px(t):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(text(px(t), HEIGHT - BOTTOM + 16, number(t, 6)))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, f"{x_label} (logarithmic)"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text(13, middle, y_label, turn=f' transform="rotate(-90 13 {middle:.1f})"'))
    for i, line in enumerate(lines):
        colour, shape = style(i)
        places = [(px(x.value), py(y.value)) for x, y in zip(line.x, line.y, strict=True)]
        if len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dash = ("", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 4"')[shape]
            out.append(f'<polyline class="line c{colour}" points="{path}"{dash}/>')
        for (x, y), cost, accuracy, note in zip(places, line.x, line.y, line.notes, strict=True):
            ends = f'y1="{py(accuracy.low):.1f}" y2="{py(accuracy.high):.1f}"'
            out.append(f'<line class="whisker thin c{colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
            ends = f'x1="{px(cost.low):.1f}" x2="{px(cost.high):.1f}"'
            out.append(f'<line class="whisker thin c{colour}" {ends} y1="{y:.1f}" y2="{y:.1f}"/>')
            told = f"{line.label}{note}: {percent(accuracy.value)} at {number(cost.value, 4)} tokens"
            out.append(f"<g><title>{escape(told)}</title>{marker(shape, x, y, colour)}</g>")
    out.append("</svg>")
    return "".join(out)


def cost_table(lines: Sequence[CostLine], x_label: str) -> str:
    """Return the table of lines that have their costs in common, see :func:`~assay.report.values.values_table`."""
    series = [
        Series(
            line.label,
            [x.value for x in line.x],
            [y.value for y in line.y],
            *(
                [[getattr(y, end) for y in line.y] for end in ("low", "high")]
                if any(y.low < y.high for y in line.y)
                else ()
            ),
        )
        for line in lines
    ]
    return values_table(series, share=True, x_label=x_label)


def cost_legend(labels: Sequence[str]) -> str:
    """Return the key to colours and marks."""
    keys = []
    for i, label in enumerate(labels):
        colour, shape = style(i)
        drawn = f'<svg width="14" height="14" viewBox="0 0 14 14">{marker(shape, 7, 7, colour)}</svg>'
        keys.append(f'<span class="mark">{drawn}{escape(label)}</span>')
    return f'<div class="legend">{"".join(keys)}</div>'
