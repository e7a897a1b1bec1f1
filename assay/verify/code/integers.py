"""Integers of more digits than Python reads by itself, in references."""

from __future__ import annotations

import io
import json
import re
import tokenize
from typing import Any

DIGITS = 4000
"""More than this many Python may refuse to read (:func:`sys.set_int_max_str_digits`)."""
_LONG = re.compile(rf"[0-9]{{{DIGITS + 1}}}")


def integer(text: str) -> int:
    """Read a decimal integer of any length."""
    if text.startswith("-"):
        return -integer(text[1:])
    if len(text) <= DIGITS:
        return int(text)
    half = len(text) // 2
    return integer(text[:-half]) * 10**half + integer(text[-half:])


def loads(text: str) -> Any:
    """As :func:`json.loads`, with integers of any length."""
    return json.loads(text, parse_int=integer) if _LONG.search(text) else json.loads(text)


def readable(source: str) -> str:
    """Return Python with its long integers in base 16, which is read whatever the length; it has no more lines."""
    if not _LONG.search(source):
        return source
    lines = io.StringIO(source).readlines()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        # No Python: whoever compiles it says where.
        return source
    for token in reversed(tokens):
        if token.type == tokenize.NUMBER and len(token.string) > DIGITS and token.string.isdecimal():
            row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
            lines[row] = lines[row][:start] + hex(integer(token.string)) + lines[row][end:]
    return "".join(lines)
