"""When what a program printed is what it should have printed."""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import Literal

TextRule = Literal["exact", "lines", "tokens", "floats"]
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE
)
LONGEST = 400
"""Characters of the longest token that is read as a number with a tolerance."""


def same_text(got: str, expected: str, rule: TextRule, relative: float, absolute: float) -> bool:
    """Say whether ``got`` is ``expected``.

    - ``exact``: character by character;
    - ``lines``: without white space at the ends of lines and empty lines at the end;
    - ``tokens``: the same words in the same order, however separated;
    - ``floats``: tokens, and numbers may differ by ``absolute`` or ``relative`` times the expected one.
    """
    if got == expected:
        return True
    if rule == "exact":
        return False
    if rule == "lines":
        return _lines(got) == _lines(expected)
    mine, theirs = got.split(), expected.split()
    if len(mine) != len(theirs):
        return False
    if rule == "tokens":
        return mine == theirs
    return all(a == b or _near(a, b, relative, absolute) for a, b in zip(mine, theirs, strict=True))


def difference(got: str, expected: str) -> str:
    """Where the two begin to differ, in a few words; empty if both are short."""
    if max(len(got), len(expected)) <= 100:
        return ""
    pairs = zip_longest(_lines(got), _lines(expected))
    for number, (mine, theirs) in enumerate(pairs, 1):
        if mine != theirs:
            shown = [("nothing" if line is None else repr(line[:60])) for line in (mine, theirs)]
            return f" (line {number}: got {shown[0]}, expected {shown[1]})"
    return ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _near(got: str, expected: str, relative: float, absolute: float) -> bool:
    if len(got) > LONGEST or len(expected) > LONGEST:
        return False
    if not (_NUMBER.fullmatch(got) and _NUMBER.fullmatch(expected)):
        return False
    a, b = float(got), float(expected)
    if math.isnan(b) or math.isinf(b) or not math.isfinite(a):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= max(absolute, relative * abs(b))
