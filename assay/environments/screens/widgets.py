"""What is on a screen: widgets in boxes, as text and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from assay.verify.gestures.gesture import Box

Kind = Literal["text", "button", "field", "switch", "item"]

BAR, ROW, MARGIN = 90, 80, 10
"""Heights of the title's bar and of a row, and what is left free between widgets."""


@dataclass(frozen=True, slots=True)
class Widget:
    """A widget.

    Attributes:
        id: unique on its page.
        kind: ``item`` is a line of a list.
        text: its label, or what a field holds.
        on: of a switch, whether it is.
        do: what a touch does to the phone; nothing happens where there is none.
        enabled: one that is not takes no touch.
        box: where it is drawn; set by :func:`placed`.
    """

    id: str
    kind: Kind
    text: str = ""
    on: bool | None = None
    do: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    enabled: bool = True
    box: Box = (0, 0, 0, 0)

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle, each coordinate in [0, 1]."""
        return (self.box[0] + self.box[2]) / 2000, (self.box[1] + self.box[3]) / 2000


Row = tuple[Widget, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """What is seen.

    Attributes:
        app, title: where one is.
        widgets: those in sight, from top to bottom.
        focus: id of the field that typed text goes to; empty where there is none.
        more: whether there are rows above and below those in sight.
    """

    app: str
    title: str
    widgets: tuple[Widget, ...]
    focus: str = ""
    more: tuple[bool, bool] = (False, False)

    def find(self, id: str) -> Widget | None:
        return next((w for w in self.widgets if w.id == id), None)

    def at(self, x: float, y: float) -> Widget | None:
        """Return the widget at a point, its coordinates in [0, 1]; boxes do not overlap."""
        across, down = 1000 * x, 1000 * y
        inside = (w for w in self.widgets if w.box[0] <= across < w.box[2] and w.box[1] <= down < w.box[3])
        return next(inside, None)

    def xml(self, boxes: bool = True) -> str:
        """Return it as an element with one for each widget, a line each."""
        lines = [f"<screen app={quoteattr(self.app)} title={quoteattr(self.title)}{_more(self.more)}>"]
        for w in self.widgets:
            told = f" id={quoteattr(w.id)}"
            told += "" if w.on is None else f' on="{str(w.on).lower()}"'
            told += "" if w.enabled else ' enabled="false"'
            told += ' focused="true"' if w.id == self.focus else ""
            told += f' box="{" ".join(map(str, w.box))}"' if boxes else ""
            lines.append(f"<{w.kind}{told}>{escape(w.text)}</{w.kind}>")
        return "\n".join([*lines, "</screen>"])


def _more(more: tuple[bool, bool]) -> str:
    where = " ".join(word for word, there in zip(("above", "below"), more, strict=True) if there)
    return f' more="{where}"' if where else ""


def placed(rows: Sequence[Row], first: int, back: Widget | None) -> tuple[tuple[Widget, ...], tuple[bool, bool]]:
    """Return the widgets of the rows in sight in their boxes, and whether there are rows above and below them.

    Args:
        rows: of the page; the widgets of a row share its width.
        first: the first row in sight.
        back: what stands in the bar, left of the title.
    """
    out = [] if back is None else [replace(back, box=(MARGIN, MARGIN, 150, BAR - MARGIN))]
    seen = rows[first : first + FITTING]
    for i, row in enumerate(seen):
        top, width = BAR + i * ROW, 1000 / len(row)
        for j, widget in enumerate(row):
            left, right = round(j * width) + MARGIN, round((j + 1) * width) - MARGIN
            out.append(replace(widget, box=(left, top + MARGIN // 2, right, top + ROW - MARGIN // 2)))
    return tuple(out), (first > 0, first + FITTING < len(rows))


FITTING = (1000 - BAR) // ROW
"""Rows that fit on a screen."""
