"""Where tags, boxes and hashes mark an answer in a response."""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple


class Span(NamedTuple):
    """An answer ``text[start:end]`` whose marker begins at ``begin`` and is over at ``over``."""

    begin: int
    start: int
    end: int
    over: int


_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}(?:final[ _-]?)?answer\s{0,3}>", re.IGNORECASE)


def tags(text: str) -> list[Span]:
    """Every ``<answer>...</answer>``, each from the last opening before its end.

    Case and blanks do not matter, and ``<final_answer>`` is the same tag.
    """
    found: list[Span] = []
    opened = None
    if "<" not in text:
        return found
    for match in _TAG.finditer(text):
        if not match[1]:
            opened = match
        elif opened is not None:
            found.append(Span(opened.start(), opened.end(), match.start(), match.end()))
            opened = None
    return found


def open_tag(text: str) -> bool:
    """Say whether the last ``<answer>`` is never closed."""
    last = deque(_TAG.finditer(text), maxlen=1)
    return bool(last) and not last[0][1]


_BRACES = re.compile(r"\\f?boxed\s?\{|\\.|[{}]", re.DOTALL)


def boxes(text: str) -> list[Span]:
    r"""Every ``\boxed{...}`` with balanced braces, in the order of their openings."""
    # One pass with a stack: looking for each box's end separately would be quadratic on unbalanced text.
    first = text.find("boxed")
    if first < 0:
        return []
    open_braces: list[re.Match[str] | None] = []
    found: list[Span] = []
    for token in _BRACES.finditer(text, max(first - 2, 0)):
        symbol = token.group()
        if symbol == "}":
            opened = open_braces.pop() if open_braces else None
            if opened is not None:
                found.append(Span(opened.start(), opened.end(), token.start(), token.end()))
        elif symbol == "{":
            open_braces.append(None)
        elif symbol.endswith("{") and "boxed" in symbol:
            open_braces.append(token)
    return sorted(found)


def hashes(text: str) -> list[Span]:
    """The rest of each line after ``####``, the last such marker of the line."""
    found = []
    place = text.find("####")
    while place >= 0:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        if text.find("\\begin{", place, end) >= 0 > text.find("\\end{", place, end):
            closing = text.find("\\end{", end, end + 4000)
            end = end if closing < 0 else text.find("\n", closing)
            end = len(text) if end < 0 else end
        start = text.rfind("####", place, end) + 4
        while start < end and text[start] in " \t":
            start += 1
        found.append(Span(place, start, end, end))
        place = text.find("####", end)
    return found
