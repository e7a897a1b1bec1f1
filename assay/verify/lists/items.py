"""Reading a list of items from an answer: JSON, LaTeX sets, bullets, lines, commas. Time is linear in its length."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from assay.verify.structured.find import NoValue, last_document, load_json
from assay.verify.text.compare import normalise, parse_number

Separator = Literal["auto", "comma", "semicolon", "newline"]
Key = Fraction | str

_BULLET = re.compile(r"\A(?:[-*\u2022\u2023\u25e6\u2013]\s+|\(?[0-9]{1,6}[.):](?:\s+|$)|\(?[a-zA-Z][.)]\s+)")
_AROUND = ((r"\left\{", r"\right\}"), (r"\{", r"\}"), ("{", "}"), ("[", "]"), ("(", ")"), ("<", ">"))
_NOTHING = frozenset({"", "none", "empty", "\\emptyset", "\\varnothing", "\u2205", "empty set", "{}", "\\{\\}"})
_OPEN, _CLOSE = "([{", ")]}"


def read_items(text: str, separator: Separator = "auto") -> list[str]:
    r"""Return the items listed in ``text``, in order, stripped; empty for "none", the empty set or nothing.

    A fenced block is read before anything around it. A JSON array gives its elements. Else one pair of brackets around
    the whole, or ``\{...\}``, is taken off, and the rest split: ``auto`` at new lines, where there are several (bullets
    and numbers are taken off), else at semicolons, else at commas outside of brackets; an "and" before the last item is
    dropped.
    """
    text = last_document(text, ("", "json", "text", "txt")).strip().strip("$").strip()
    try:
        if text.startswith("[") and isinstance(value := load_json(text), list):
            return [_text(item) for item in value]
    except NoValue:
        pass
    text = _unwrap(text)
    if text.strip("` *.").casefold() in _NOTHING:
        return []
    if separator == "auto":
        lines = [line for line in text.splitlines() if line.strip()]
        separator = "newline" if len(lines) > 1 else "semicolon" if ";" in text else "comma"
    if separator == "newline":
        return [item for line in text.splitlines() if (item := _BULLET.sub("", line.lstrip()).strip())]
    text = _BULLET.sub("", text)
    pieces = text.split(";") if separator == "semicolon" else split_outside(text, ",")
    pieces = [p.strip() for p in pieces]
    if len(pieces) > 1:
        pieces[-1] = re.sub(r"^and\s+", "", pieces[-1])
    return [p for p in pieces if p]


def split_outside(text: str, mark: str) -> list[str]:
    """Split ``text`` at ``mark`` wherever it is outside of round, square and curly brackets."""
    pieces, depth, start = [], 0, 0
    for match in re.finditer(rf"[()\[\]{{}}]|{re.escape(mark)}", text):
        symbol = match[0]
        if symbol in _OPEN:
            depth += 1
        elif symbol in _CLOSE:
            depth = max(depth - 1, 0)
        elif depth == 0:
            pieces.append(text[start : match.start()])
            start = match.end()
    return [*pieces, text[start:]]


def _unwrap(text: str) -> str:
    for opening, closing in _AROUND:
        if text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : -len(closing)]
            # "(1, 2), (3, 4)" is two items and has no brackets around the whole.
            if _balanced(inside):
                return inside.strip()
    return text


def _balanced(text: str) -> bool:
    depth = 0
    for symbol in re.findall(r"[()\[\]{}]", text):
        depth += 1 if symbol in _OPEN else -1
        if depth < 0:
            return False
    return depth == 0


def _text(item: Any) -> str:
    return item.strip() if isinstance(item, str) else json.dumps(item, sort_keys=True)


def item_key(text: str, ignore_case: bool = True, numeric: bool = True) -> Key:
    """Return what two equal items share: the exact number, where the item is one, else its normalised text."""
    plain = normalise(text, ignore_case)
    number = parse_number(plain) if numeric else None
    return plain if number is None else number


def reference_items(reference: Any, separator: Separator = "auto") -> list[str] | None:
    """Return the items of a reference, a list or text that is read like an answer; ``None`` if it is neither."""
    if isinstance(reference, str):
        return read_items(reference, separator)
    if isinstance(reference, Sequence | set | frozenset) and not isinstance(reference, Mapping | bytes | bytearray):
        return [_text(item) for item in reference]
    return None
