"""Reading the tool calls of a response, in the notations that models write. Time is linear in its length.

- ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` (Hermes, Qwen);
- ``<function=name>{...}</function>``, or with ``<parameter=key>value</parameter>`` inside (Llama 3.1, Qwen coder);
- JSON: one call, an array of calls, or a message with ``tool_calls`` (OpenAI), arguments as an object or as JSON text;
- ``[f(a=1), g(b="x")]``: Python calls with literal keyword arguments (BFCL).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.verify.structured.find import NoValue, fences, last_json, load_json

Format = Literal["auto", "tags", "function", "json", "python"]
MAX_PYTHON = 20_000
"""Characters of the longest text that is read as Python calls."""
MAX_NESTED = 50


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's name and its arguments, as JSON has them."""

    name: str
    arguments: Mapping[str, Any]


class BadCall(ValueError):
    """Something stands there as a call and is none; the message says why."""


class NoName(BadCall):
    """It does not say what it calls."""


def read_calls(text: str, form: Format = "auto") -> list[Call]:
    """Return the calls that ``text`` makes, in order; none where it makes none.

    ``auto`` takes the first of the notations above, in that order, of which there is any sign.

    Raises:
        BadCall: a call is begun that cannot be read.
    """
    if form == "tags" or (form == "auto" and "<tool_call>" in text):
        return [call for body in _between(text, "<tool_call>", "</tool_call>") for call in _tagged(body)]
    if form == "function" or (form == "auto" and "<function=" in text):
        return [_function(body) for body in _between(text, "<function=", "</function>")]
    if form in ("json", "auto"):
        try:
            calls = calls_of(last_json(text))
        except NoValue as error:
            if form == "json" and ("{" in text or "[" in text):
                raise BadCall(str(error)) from None
            calls = None
        if calls is not None or form == "json":
            return calls or []
    return _python(text, sure=form == "python")


def _between(text: str, opening: str, closing: str) -> list[str]:
    """Return what stands between each ``opening`` and the next ``closing``; BadCall where that is missing."""
    bodies, position = [], 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            raise BadCall(f"{opening} without {closing}")
        bodies.append(text[start + len(opening) : end])
        position = end + len(closing)
    return bodies


def _tagged(body: str) -> list[Call]:
    if body.lstrip().startswith("<function="):
        return [_function(inner) for inner in _between(body, "<function=", "</function>")]
    try:
        calls = calls_of(load_json(body))
    except NoValue as error:
        raise BadCall(str(error)) from None
    if calls is None:
        raise NoName("a tool call without name and arguments")
    return calls


_PARAMETER = "<parameter="


def _function(body: str) -> Call:
    name, closed, rest = body.partition(">")
    if not closed or not name.strip():
        raise NoName("a <function= without its name")
    if _PARAMETER not in rest:
        return Call(name.strip(), _arguments(rest.strip() or "{}"))
    arguments: dict[str, Any] = {}
    for parameter in _between(rest, _PARAMETER, "</parameter>"):
        key, closed, value = parameter.partition(">")
        if not closed or key.strip() in arguments:
            raise BadCall(f"parameter {key.strip()[:40]!r} is malformed or repeated")
        value = value.removeprefix("\n").removesuffix("\n")
        try:
            arguments[key.strip()] = load_json(value)
        except NoValue:
            arguments[key.strip()] = value
    return Call(name.strip(), arguments)


def calls_of(value: Any) -> list[Call] | None:
    """Return the calls that a JSON value stands for, ``None`` where it has not the form of any.

    Raises:
        BadCall: the arguments of a call are no object.
    """
    if isinstance(value, Mapping) and "tool_calls" in value:
        value = value["tool_calls"] or []
    items = value if isinstance(value, list) else [value]
    calls = []
    for item in items:
        inner = item.get("function", item) if isinstance(item, Mapping) else None
        if isinstance(inner, str) and isinstance(item, Mapping):
            inner = {**item, "name": inner}
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
            return None
        given = next((inner[key] for key in ("arguments", "parameters", "args") if key in inner), None)
        if given is None and not {"arguments", "parameters", "args"} & inner.keys() and inner.keys() != {"name"}:
            return None
        calls.append(Call(inner["name"], _arguments({} if given is None else given)))
    return calls


def _arguments(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = load_json(given)
        except NoValue as error:
            raise BadCall(f"arguments: {error}") from None
    if not isinstance(given, Mapping):
        raise BadCall("arguments are no object")
    return given


_CALL_START = re.compile(r"[A-Za-z_][\w.]{0,100}\(")
_BRACKETS = re.compile(r"[(\[{]|[)\]}]")


def _python(text: str, sure: bool) -> list[Call]:
    """Read ``[f(a=1), g(b="x")]`` or ``f(a=1)``: the last fenced block, else the whole, else the last line."""
    blocks = [body for language, body in fences(text) if language in ("", "python", "py", "tool_code")]
    stripped = text.strip()
    candidates = [*blocks[-1:], stripped, stripped.rpartition("\n")[2]]
    complaint: BadCall | None = None
    for candidate in (c.strip().strip("`").strip() for c in candidates):
        if not _CALL_START.match(candidate.lstrip("[ \t\n")):
            continue
        try:
            return _python_calls(candidate)
        except BadCall as error:
            complaint = error
    # Prose may hold "f(x)", so what does not begin as a list of calls is no call that failed.
    if complaint is not None and (sure or stripped.startswith("[")):
        raise complaint
    return []


def _python_calls(text: str) -> list[Call]:
    depth = 0
    for bracket in _BRACKETS.finditer(text[: MAX_PYTHON + 1]):
        depth += 1 if bracket[0] in "([{" else -1
        if depth > MAX_NESTED:
            raise BadCall("nested too deep")
    if len(text) > MAX_PYTHON:
        raise BadCall(f"longer than {MAX_PYTHON} characters")
    try:
        tree = ast.parse(text, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [_python_call(node) for node in nodes]
    except BadCall:
        raise
    # What CPython's parser raises for text that it cannot read, or for "----...-1".
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        # Without the address of an object, which differs each time.
        raise BadCall(f"not a call: {str(error).partition(': <')[0]}"[:100]) from None


def _python_call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call):
        raise BadCall("not a list of calls")
    if node.args:
        raise BadCall("a positional argument; arguments need their names")
    path: list[str] = []
    function = node.func
    while isinstance(function, ast.Attribute):
        path.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        raise BadCall("a call of something that is no name")
    path.append(function.id)
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise BadCall("an argument without a name, or repeated")
        arguments[keyword.arg] = _plain(ast.literal_eval(keyword.value))
    return Call(".".join(reversed(path)), arguments)


def _plain(value: Any) -> Any:
    """Return a Python literal as JSON has it; its depth is bounded by that of the brackets."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise BadCall(f"{type(value).__name__} is no argument that JSON has")
