"""SVG drawings as PNG files."""

from __future__ import annotations

from assay.errors import UsageError


def png(svg: str, style: str = "", zoom: float = 1.0) -> bytes:
    """Return an SVG drawing as a PNG file, on white, with the fonts of the system.

    Args:
        svg: the drawing.
        style: CSS for it.
        zoom: pixels for each of its units.

    Raises:
        UsageError: resvg is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        raise UsageError("PNG files need resvg: pip install 'assay[png]'") from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, style_sheet=style or None, background="#ffffff", zoom=zoom))
