"""Intervals of time: reading them, and their intersection over union."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from assay.verify.geometry.read import DIGITS

Interval = tuple[float, float]

_CLOCK = r"[0-9]{1,4}(?::[0-9]{1,2}){1,2}(?:\.[0-9]{1,30})?"
_UNIT = r"(?:\s{0,3}(?:seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)\b\.?)?"
_TIME = rf"({_CLOCK}|{DIGITS})({_UNIT})"
_SPAN = re.compile(
    rf"(?<![0-9A-Za-z_.:-]){_TIME}[\s\])\"']{{0,3}}(?:-+|\u2013|\u2014|\u2192|to\b|until\b|till\b|and\b|,|->)"
    rf"[\s(\[\"']{{0,3}}(?:the\s)?{_TIME}(?![0-9A-Za-z_:])",
    re.IGNORECASE,
)


def seconds(text: str, unit: str = "") -> float:
    """Return a time in seconds: ``mm:ss``, ``hh:mm:ss``, or a number of seconds, minutes or hours by ``unit``."""
    value = 0.0
    for piece in text.split(":"):
        value = value * 60 + float(piece)
    first = unit.strip()[:1].lower()
    return value * {"m": 60.0, "h": 3600.0}.get(first, 1.0) if ":" not in text else value


def read_spans(text: str) -> list[Interval]:
    """Return every interval written in ``text``, in order, in seconds: "from 1:05 to 1:20", "3.5s - 7s", "[2, 8]".

    An interval need not have a positive length here. Linear time.
    """
    spans = []
    for match in _SPAN.finditer(text):
        start, start_unit, end, end_unit = match.groups()
        # "2 - 3 minutes" says the unit once.
        spans.append((seconds(start, start_unit or end_unit), seconds(end, end_unit)))
    return spans


def merged(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the union of ``intervals`` as intervals that do not touch, in order."""
    union: list[Interval] = []
    for start, end in sorted(intervals):
        if union and start <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], end)
        else:
            union.append((start, end))
    return union


def interval_iou(given: Sequence[Interval], wanted: Sequence[Interval]) -> float:
    """Length of the intersection of two unions of intervals over that of all of them together, in [0, 1].

    For one interval each, max(0, min(e, e') - max(s, s')) over the length that both cover; 1 for two empty unions.
    """
    a, b = merged(given), merged(wanted)
    common, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        common += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    union = math.fsum(e - s for s, e in merged([*a, *b]))
    return common / union if union > 0 else float(not a and not b)
