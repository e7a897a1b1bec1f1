"""Gestures as lines of text: clicks, texts, swipes, keys, and the end."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Literal

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, in thousandths of the screen's width and height."""
Kind = Literal["click", "type", "swipe", "press", "wait", "terminate"]
WORDS: dict[str, tuple[str, ...]] = {
    "swipe": ("up", "down", "left", "right"),
    "press": ("back", "home"),
    "terminate": ("success", "failure"),
}
"""What can follow these kinds."""
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}

USAGE = """click ID
click X Y
type "TEXT"
type ID "TEXT"
swipe up|down|left|right
press back|home
wait
terminate success|failure"""
_TYPE = re.compile(r'type(?: (?P<id>[^\s"]+))? (?P<text>"(?:[^"\\]|\\.)*")', re.DOTALL)
_POINT = re.compile(r"click (\d(?:\.\d{1,6})?|\.\d{1,6}),? (\d(?:\.\d{1,6})?|\.\d{1,6})")


@dataclass(frozen=True, slots=True)
class Gesture:
    """One gesture.

    Attributes:
        kind: what it is.
        id: of the widget it is made on; empty where a point is given, or none is meant.
        point: of a click, each coordinate in [0, 1], from the upper left corner.
        text: what is typed, where it is swiped to, which key is pressed, what the episode ends with.
    """

    kind: Kind
    id: str = ""
    point: tuple[float, float] | None = None
    text: str = ""

    def __str__(self) -> str:
        """The line that :func:`read_gesture` reads."""
        if self.kind == "click":
            return f"click {self.id}" if self.point is None else f"click {self.point[0]:.4g} {self.point[1]:.4g}"
        words = [self.kind, self.id, json.dumps(self.text, ensure_ascii=False) if self.kind == "type" else self.text]
        return " ".join(word for word in words if word)


def read_gesture(line: str) -> Gesture | str:
    """Return the gesture that a line says, or what is wrong with it."""
    kind, _, rest = line.partition(" ")
    if line == "wait":
        return Gesture("wait")
    if kind in WORDS:
        return Gesture(kind, text=rest) if rest in WORDS[kind] else f"{kind} takes {' or '.join(WORDS[kind])}"  # type: ignore[arg-type]
    if found := _POINT.fullmatch(line):
        x, y = float(found[1]), float(found[2])
        return Gesture("click", point=(x, y)) if max(x, y) <= 1 else "coordinates are from 0 to 1"
    if found := _TYPE.fullmatch(line):
        try:
            return Gesture("type", found["id"] or "", text=json.loads(found["text"], strict=False))
        except ValueError:
            return "the text is not quoted as JSON quotes it"
    if kind == "type":
        return 'type takes a text in quotes, as in type "a word"'
    if kind == "click" and rest and not re.search(r"\s", rest):
        return Gesture("click", rest)
    return f"{line[:60]!r} is no gesture; there are click, type, swipe, press, wait, terminate"


def near(a: tuple[float, float], b: tuple[float, float], within: float) -> bool:
    """Whether two points are no further apart than this."""
    return math.dist(a, b) <= within


def inside(point: tuple[float, float], box: Box, larger: float = 1.0) -> bool:
    """Whether a point, its coordinates in [0, 1], is in a box made larger about its centre."""
    left, top, right, bottom = box
    across, down = abs(2000 * point[0] - left - right), abs(2000 * point[1] - top - bottom)
    return across <= larger * (right - left) and down <= larger * (bottom - top)
