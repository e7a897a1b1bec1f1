"""Where in a response a document stands: fenced blocks, and the last JSON value. Time is linear in its length."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

MAX_DEPTH = 100
"""Nested containers of a value that is read; deeper ones are no answer anybody meant."""


class NoValue(ValueError):
    """There is no value to be read; the message says why."""


_FENCE = re.compile(r"^[ \t]{0,8}(```+|~~~+)[ \t]*([^\s`]*)[^\n`]*$", re.MULTILINE)


def fences(text: str) -> list[tuple[str, str]]:
    """Return ``(language in lower case, body)`` of every closed fenced block, in order."""
    blocks: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append((opened[2].lower(), text[opened.end() + 1 : fence.start()]))
            opened = None
    return blocks


def last_document(text: str, languages: Collection[str]) -> str:
    """Return the body of the last fenced block in one of ``languages`` or in none; without any, the whole text."""
    for language, body in reversed(fences(text)):
        if language in languages or not language:
            return body
    return text


def last_json(text: str) -> Any:
    """Return the JSON value that ``text`` gives as its answer.

    The last fenced block that is JSON; else the whole text, where it is JSON; else the last object or array in it that
    is not part of a larger one. Strict JSON: no comments, no ``NaN``, nothing nested deeper than :data:`MAX_DEPTH`.

    Raises:
        NoValue: there is none, or it holds a number that has no finite value or is too long to be read.
    """
    with suppress(NoValue):
        return whole_json(text)
    last: tuple[int, int] | None = None
    for last in containers(text):  # noqa: B007
        pass
    if last is None:
        raise NoValue("no JSON in the response")
    return load_json(text[last[0] : last[1]])


def whole_json(text: str) -> Any:
    """Return the JSON value that the last fenced block with one holds, or that the whole of ``text`` is.

    Raises:
        NoValue: there is neither.
    """
    for language, body in reversed(fences(text)):
        if language in ("json", "jsonc", "json5", "") and (value := _whole(body)) is not _NOTHING:
            return value
    if (value := _whole(text)) is not _NOTHING:
        return value
    raise NoValue("no JSON in the response")


def load_json(text: str) -> Any:
    """Return the JSON value that ``text`` is; the last of repeated keys counts.

    Raises:
        NoValue: it is no JSON, nested too deep, or holds a number without a finite value.
    """
    if _depth(text) > MAX_DEPTH:
        raise NoValue(f"nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except NoValue:
        raise
    except ValueError as error:
        raise NoValue(f"not JSON: {error}"[:120]) from None


_NOTHING = object()


def _whole(text: str) -> Any:
    text = text.strip()
    # Most text is ruled out by its first character.
    if not text or not (text[0] in '{["-tfn' or text[0].isdigit()):
        return _NOTHING
    try:
        return load_json(text)
    except NoValue:
        return _NOTHING


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NoValue(f"{text[:20]} is too large")
    return value


def _refuse(text: str) -> float:
    raise NoValue(f"{text} is no JSON number")


_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_TOKEN = re.compile(
    rf"[ \t\r\n]++|(?P<string>{_STRING})|(?P<scalar>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
    r"|true|false|null)|(?P<mark>[{}\[\]:,])|.",
    re.DOTALL,
)
_OPENING = re.compile(r"[{\[]")
# An escaped quote outside a string opens none: trying at each of them would be quadratic.
_BRACKET = re.compile(rf"{_STRING}|\\.|([{{\[])|([}}\]])", re.DOTALL)


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        if bracket[1]:
            depth += 1
            deepest = max(deepest, depth)
        elif bracket[2]:
            depth -= 1
    return deepest


# What may come next inside a container: a push-down automaton instead of a parser called at every bracket, which
# would be quadratic on "[[[[...". A token that does not fit drops everything that is open.
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA_OR_END = range(6)


def containers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of every outermost JSON object or array in ``text``, in order; they do not overlap."""
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        start = opening.start()
        position = start
        stack: list[str] = []
        state = _VALUE
        while (token := _TOKEN.match(text, position)) is not None:
            position = token.end()
            if token[0][0] in " \t\r\n":
                continue
            after = _step(stack, state, token.lastgroup, token[0])
            if after is None:
                # The bracket that does not fit may open a value of its own: "\boxed{[1, 2]}".
                if token.start() > start and token[0] in "{[":
                    position = token.start()
                break
            state = after
            if not stack:
                yield start, position
                break


def _step(stack: list[str], state: int, kind: str | None, token: str) -> int | None:
    """Push or pop ``stack``; return the next state, or ``None`` where the token does not fit."""
    if kind is None:
        return None
    if kind != "mark":
        if state in (_KEY, _KEY_OR_END):
            return _COLON if kind == "string" else None
        return _COMMA_OR_END if state in (_VALUE, _VALUE_OR_END) else None
    if token in "{[":
        if state not in (_VALUE, _VALUE_OR_END) or len(stack) >= MAX_DEPTH:
            return None
        stack.append(token)
        return _KEY_OR_END if token == "{" else _VALUE_OR_END
    if token in "}]":
        ends = state == _COMMA_OR_END or state == (_KEY_OR_END if token == "}" else _VALUE_OR_END)
        if not ends or stack[-1] != ("{" if token == "}" else "["):
            return None
        stack.pop()
        return _COMMA_OR_END
    if token == ":":
        return _VALUE if state == _COLON else None
    return (_KEY if stack[-1] == "{" else _VALUE) if state == _COMMA_OR_END else None
