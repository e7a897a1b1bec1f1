"""The table beside a chart: what it draws, for who reads numbers or cannot see lines."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from assay.report.format import MISSING, number, percent
from assay.report.svg import Series, drawable, thinned


def values_table(series: Sequence[Series], *, share: bool = False, x_label: str = "step") -> str:
    """Return a folded ``<details>`` with a row for each x, as the chart of the same arguments draws them, or nothing
    where it draws nothing."""
    show = percent if share else number
    series = [thinned(s) for s in series]
    drawn = [{x: i for i, (x, y) in enumerate(zip(s.x, s.y, strict=True)) if drawable(y)} for s in series]
    xs = sorted({x for places in drawn for x in places})
    if not xs:
        return ""

    def cell(s: Series, i: int | None) -> str:
        if i is None:
            return MISSING
        ends = "" if s.low is None or s.high is None else f" [{show(s.low[i])}, {show(s.high[i])}]"
        return show(s.y[i]) + ends

    head = "".join(f"<th>{escape(s.label)}</th>" for s in series)
    rows = (
        f"<tr><td>{number(x, 6)}</td>"
        + "".join(f"<td>{cell(s, places.get(x))}</td>" for s, places in zip(series, drawn, strict=True))
        + "</tr>"
        for x in xs
    )
    return (
        f'<details class="values"><summary>Values</summary><div class="scroll"><table><thead><tr><th>{escape(x_label)}'
        f"</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )
