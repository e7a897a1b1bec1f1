"""Line charts as inline SVG: no script, a value under the pointer by CSS alone, colours from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from assay.report.format import MINUS, number, percent

WIDTH, HEIGHT = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 34
MOST_POINTS = 160
"""Points drawn per line; more are averaged, since a chart is no wider than a few hundred pixels."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line (or points) of a chart.

    Attributes:
        label: what the legend says.
        x, y: the points; a y that is NaN breaks the line.
        low, high: a band around a line, or whiskers of points.
        points: draw points with whiskers and no line.
        colour: index into the page's palette, 1 to 6.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    points: bool = False
    colour: int = 1


def drawable(x: float) -> bool:
    """Whether a value has a place on an axis: finite, and far enough from the largest float to compute with."""
    return math.isfinite(x) and abs(x) < 1e300


def ticks(low: float, high: float, target: int = 5) -> list[float]:
    """Round numbers (1, 2, 2.5 or 5 times a power of ten apart) covering ``[low, high]``, about ``target`` of them."""
    size = max(abs(low), abs(high))
    if high - low <= max(1e-12 * size, 1e-200):
        room = size / 2 if size > 1e-200 else 1.0
        low, high = low - room, low + room
    raw = (high - low) / max(target - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def axis_labels(values: Sequence[float], share: bool) -> list[str]:
    """Write the ticks of an axis with the digits their distance needs, the same for all."""
    scale, unit = (100, "%") if share else (1, "")
    step = (values[1] - values[0]) * scale if len(values) > 1 else 1.0
    if not 1e-3 <= step < 1e6:
        return [number(v * scale) + unit for v in values]
    places = next(p for p in range(9) if abs(step - round(step, p)) < 1e-6 * step or p == 8)
    return [f"{v * scale + 0.0:,.{places}f}{unit}".replace("-", MINUS) for v in values]


def line_chart(
    series: Sequence[Series],
    name: str = "",
    *,
    share: bool = False,
    x_label: str = "step",
    floor: float | None = None,
    ceiling: float | None = None,
) -> str:
    """Return an ``<svg>`` of the series, or an empty string when there is no finite point among them.

    Args:
        name: what who cannot see it is told it is; the labels of the series unless given.
        share: y is a share of 1, written in percent.
        floor, ceiling: least and largest value that makes sense: the axis ends there unless the data do not, and
            begins at ``floor`` when the data come near it.
    """
    show = percent if share else number
    series = [thinned(s) for s in series]
    xs = [x for s in series for x, y in zip(s.x, s.y, strict=True) if drawable(y)]
    if not xs:
        return ""
    ys = [v for s in series for row in (s.y, s.low or (), s.high or ()) for v in row if drawable(v)]
    low, high = min(ys), max(ys)
    least = floor if floor is not None and floor <= low else -math.inf
    most = ceiling if ceiling is not None and ceiling >= high else math.inf
    if low - least < 0.5 * (high - low):
        low = least
    y_ticks = [t for t in ticks(low, high) if least - 1e-12 <= t <= most + 1e-12]
    y_low, y_high = min(y_ticks[0], low), max(y_ticks[-1], high)
    x_low, x_high = min(xs), max(xs)
    x_span, y_span = (x_high - x_low) or 1.0, (y_high - y_low) or 1.0

    def px(x: float) -> float:
        return LEFT + (x - x_low) / x_span * (WIDTH - LEFT - RIGHT)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (min(max(y, y_low), y_high) - y_low) / y_span * (HEIGHT - TOP - BOTTOM)

    told = escape(f"{name or ', '.join(s.label for s in series)} against {x_label}")
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="chart" aria-label="{told}">']
    for t, label in zip(y_ticks, axis_labels(y_ticks, share), strict=True):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(t):.1f}" y2="{py(t):.1f}"/>')
        out.append(_text(LEFT - 7, py(t) + 3.5, label, "end"))
    for t in ticks(x_low, x_high, 6):
        if x_low <= t <= x_high and t == round(t):
            out.append(_text(px(t), HEIGHT - BOTTOM + 15, number(t, 6)))
    out.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, x_label))
    for s in series:
        out += _whiskers(s, px, py) if s.points else _line(s, px, py)
    out += _readout(series, show, x_label, px, py)
    out.append("</svg>")
    return "".join(out)


def legend(series: Sequence[Series]) -> str:
    """Return the key to the colours; nothing for a single line, which its title already names."""
    if len(series) < 2:
        return ""
    keys = (
        f'<span class="key{" dot" if s.points else ""} c{s.colour}"><i></i>{escape(s.label)}</span>' for s in series
    )
    return f'<div class="legend">{"".join(keys)}</div>'


def stacked_bar(shares: Sequence[tuple[str, float, str]]) -> str:
    """Return one bar split into ``(label, share of 1, text under the pointer)``, colours in order."""
    told = escape("; ".join(f"{label}: {text}" for label, _, text in shares))
    opened = f'<svg viewBox="0 0 {2 * WIDTH} 26" preserveAspectRatio="none" role="img" class="bar" aria-label="{told}">'
    out, x = [opened], 0.0
    for i, (label, share, text) in enumerate(shares, 1):
        out.append(
            f'<rect class="c{i}" x="{x:.2f}" y="0" width="{share * 2 * WIDTH:.2f}" height="26">'
            f"<title>{escape(label)}: {escape(text)}</title></rect>"
        )
        x += share * 2 * WIDTH
    return "".join(out) + "</svg>"


def thinned(s: Series) -> Series:
    """Average neighbouring points of a line until at most :data:`MOST_POINTS` are left."""
    n = len(s.x)
    if s.points or n <= MOST_POINTS:
        return s
    edges = [i * n // MOST_POINTS for i in range(MOST_POINTS + 1)]

    def mean(row: Sequence[float] | None) -> list[float] | None:
        return None if row is None else [_mean(row[a:b]) for a, b in pairwise(edges)]

    return Series(s.label, mean(s.x) or [], mean(s.y) or [], mean(s.low), mean(s.high), s.points, s.colour)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="tick" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _dot(s: Series, x: float, y: float, radius: float) -> str:
    return f'<circle class="point c{s.colour}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _mean(values: Iterable[float]) -> float:
    finite = [v for v in values if drawable(v)]
    return sum(finite) / len(finite) if finite else math.nan


def _runs(s: Series) -> list[list[int]]:
    """Indices of the unbroken stretches of a line."""
    runs: list[list[int]] = [[]]
    for i, y in enumerate(s.y):
        if drawable(y):
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    return [r for r in runs if r]


def _line(s: Series, px: Callable[[float], float], py: Callable[[float], float]) -> list[str]:
    out = []
    for run in _runs(s):
        if s.low is not None and s.high is not None and len(run) > 1:
            edge = [(s.x[i], s.high[i]) for i in run] + [(s.x[i], s.low[i]) for i in reversed(run)]
            path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in edge if drawable(y))
            out.append(f'<polygon class="band c{s.colour}" points="{path}"/>')
        if len(run) == 1:
            out.append(_dot(s, px(s.x[run[0]]), py(s.y[run[0]]), 3))
        else:
            path = " ".join(f"{px(s.x[i]):.1f},{py(s.y[i]):.1f}" for i in run)
            out.append(f'<polyline class="line c{s.colour}" points="{path}"/>')
    return out


def _whiskers(s: Series, px: Callable[[float], float], py: Callable[[float], float]) -> list[str]:
    out = []
    for run in _runs(s):
        for i in run:
            x, y = px(s.x[i]), py(s.y[i])
            if s.low is not None and s.high is not None:
                ends = f'y1="{py(s.low[i]):.1f}" y2="{py(s.high[i]):.1f}"'
                out.append(f'<line class="whisker c{s.colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
            out.append(_dot(s, x, y, 4))
    return out


def _readout(
    series: Sequence[Series],
    show: Callable[[float], str],
    x_label: str,
    px: Callable[[float], float],
    py: Callable[[float], float],
) -> list[str]:
    """An invisible strip over each x that shows its values (as a title) and a hairline under the pointer."""
    values: dict[float, list[tuple[Series, int]]] = {}
    for s in series:
        for run in _runs(s):
            for i in run:
                values.setdefault(s.x[i], []).append((s, i))
    xs = sorted(values)
    edges = [float(LEFT), *((px(a) + px(b)) / 2 for a, b in pairwise(xs)), float(WIDTH - RIGHT)]
    out = []
    for x, (left, right) in zip(xs, pairwise(edges), strict=True):
        lines = [f"{x_label} {number(x, 6)}"]
        for s, i in values[x]:
            lines.append(f"{s.label}: {show(s.y[i])}")
            if s.low is not None and s.high is not None:
                lines[-1] += f" [{show(s.low[i])}, {show(s.high[i])}]"
        dots = "".join(_dot(s, px(x), py(s.y[i]), 3) for s, i in values[x])
        out.append(
            f'<g class="at"><title>{escape(chr(10).join(lines))}</title>'
            f'<rect x="{left:.1f}" y="{TOP}" width="{max(right - left, 0.5):.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
            f'<line x1="{px(x):.1f}" x2="{px(x):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>{dots}</g>'
        )
    return out
