"""Numbers as people read them."""

from __future__ import annotations

import math

MISSING = "\u2013"
MINUS = "\u2212"


def number(x: float | None, digits: int = 3) -> str:
    """``digits`` significant digits, thousands separated, powers of ten only where zeros would pile up."""
    if x is None or not math.isfinite(x):
        return MISSING if x is None or math.isnan(x) else ("∞" if x > 0 else f"{MINUS}∞")
    if x == 0:
        return "0"
    size = math.floor(math.log10(abs(x)))
    if size >= 9 or size < -4:
        mantissa, exponent = f"{x:.{max(digits - 1, 0)}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    else:
        text = f"{x:,.{max(digits - 1 - size, 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", MINUS)


def percent(x: float | None) -> str:
    """A share as ``41.2%``."""
    return MISSING if x is None or not math.isfinite(x) else f"{100 * x:.1f}%"


def points(x: float) -> str:
    """A difference of two shares in signed percentage points."""
    return f"{'+' if x >= 0 else MINUS}{abs(100 * x):.1f}"


def count(x: float) -> str:
    """A whole number with thousands separated."""
    return f"{round(x):,}"


def duration(seconds: float) -> str:
    """Seconds as ``45 s``, ``12 min 05 s`` or ``3 h 07 min``."""
    if seconds < 60:
        return f"{number(seconds, 2)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"
