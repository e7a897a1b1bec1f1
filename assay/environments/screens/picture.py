"""A screen as a picture: SVG, and PNG by resvg."""

from __future__ import annotations

from collections.abc import Callable
from xml.sax.saxutils import escape

from assay.environments.screens.widgets import BAR, Screen, Widget
from assay.records.png import png

WIDTH, HEIGHT = 360, 640
FILLS = {"text": "none", "button": "#1f5fbf", "field": "#ffffff", "switch": "#eef1f6", "item": "#eef1f6"}
INKS = {"button": "#ffffff"}


def svg(screen: Screen) -> str:
    """Return a screen as an SVG drawing of 360 by 640."""
    shapes = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f8f9fb"/>']
    bar = HEIGHT * BAR / 1000
    shapes.append(f'<rect width="{WIDTH}" height="{bar:.1f}" fill="#dfe5ee"/>')
    left = 70 if screen.find("back") else 14
    shapes.append(_text(left, bar / 2, screen.title, 17, "#1a1d23", WIDTH - left - 14))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="DejaVu Sans, sans-serif">{"".join(shapes)}{"".join(map(_drawing(screen), screen.widgets))}</svg>'
    )


def drawn(screen: Screen, zoom: float = 1.0) -> bytes:
    """Return a screen as a PNG file of 360 by 640, times ``zoom``.

    Raises:
        UsageError: resvg is not installed.
    """
    return png(svg(screen), zoom=zoom)


def _drawing(screen: Screen) -> Callable[[Widget], str]:
    def draw(widget: Widget) -> str:
        x0, x1 = (v * WIDTH / 1000 for v in (widget.box[0], widget.box[2]))
        y0, y1 = (v * HEIGHT / 1000 for v in (widget.box[1], widget.box[3]))
        focused = widget.id == screen.focus
        edge = "#1f5fbf" if focused else "#9aa4b2" if widget.kind == "field" else "none"
        shape = (
            f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" rx="6" '
            f'fill="{FILLS[widget.kind]}" stroke="{edge}" stroke-width="{2 if focused else 1}"/>'
        )
        room = x1 - x0 - 12
        if widget.on is not None:
            room -= 40
            knob = x1 - (16 if widget.on else 32)
            middle = (y0 + y1) / 2
            track = "#1f5fbf" if widget.on else "#b8c0cc"
            shape += f'<rect x="{x1 - 42:.1f}" y="{middle - 9:.1f}" width="36" height="18" rx="9" fill="{track}"/>'
            shape += f'<circle cx="{knob:.1f}" cy="{middle:.1f}" r="7" fill="#ffffff"/>'
        ink = INKS.get(widget.kind, "#1a1d23")
        label = _text(x0 + 6, (y0 + y1) / 2, widget.text, 13, ink, room)
        return f'<g opacity="{1 if widget.enabled else 0.4}">{shape}{label}</g>'

    return draw


def _text(x: float, middle: float, text: str, size: int, ink: str, room: float) -> str:
    """Return a line of text; one that is wider than its room is pressed into it."""
    fit = f' textLength="{room:.1f}" lengthAdjust="spacingAndGlyphs"' if 0.62 * size * len(text) > room else ""
    return (
        f'<text x="{x:.1f}" y="{middle + 0.35 * size:.1f}" font-size="{size}" fill="{ink}"{fit}>{escape(text)}</text>'
    )
