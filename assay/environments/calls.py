"""Tool calls as a model writes them: where each stands, and what is wrong with those that cannot be made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from assay.errors import UsageError
from assay.types import Problem, Tool, ToolCall
from assay.verify.tool_calls.formats import BadCall, Call, Format, NoName, read_calls

THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
OPENINGS = {"<tool_call>": "</tool_call>", "<function=": "</function>"}
"""What opens a call in the notations that have tags, and what closes it."""


def find_calls(text: str, tools: Sequence[Tool], form: Format = "auto") -> tuple[ToolCall, ...]:
    """Return every call that ``text`` makes or tries to make, in order, with its place in characters.

    Calls within ``<think>`` are none. In the notations with tags each call stands and falls by itself; in the
    others the text is one list of calls, and one that cannot be read is one call with a problem.

    Args:
        text: of one turn.
        tools: that may be called; the arguments must fit their schema.
        form: a notation, see :mod:`assay.verify.tool_calls.formats`.
    """
    hidden = [match.span() for match in THOUGHTS.finditer(text)]
    first = text.rfind("</think>", 0, hidden[0][0] if hidden else len(text))
    if first >= 0:  # the template has opened the thought
        hidden.append((0, first + len("</think>")))
    seen = text
    for start, end in hidden:
        seen = seen[:start] + " " * (end - start) + seen[end:]
    known = {tool.name: tool for tool in tools}
    found: list[ToolCall] = []
    tagged = form in ("auto", "tags") and "<tool_call>" in seen
    if tagged or (form in ("auto", "function") and "<function=" in seen):
        opening = "<tool_call>" if tagged else "<function="
        for start, end, closed in _pieces(seen, opening, OPENINGS[opening]):
            if not closed:
                reason = f"{opening.rstrip('=<')}: it is not closed by {OPENINGS[opening]}"
                found.append(ToolCall("", None, start, end, "unclosed", reason))
                continue
            found += _read(seen[start:end], "tags" if tagged else "function", start, end, known)
    elif seen.strip():
        start = len(seen) - len(seen.lstrip())
        found += _read(seen, form, start, len(seen.rstrip()), known)
    return tuple(
        ToolCall(c.name, c.arguments, c.start, c.end, c.problem, c.reason, f"call_{i}") for i, c in enumerate(found)
    )


def written(made: Sequence[ToolCall], form: Format = "auto") -> str:
    """Return calls as a model writes them: Python calls for ``python``, else each as JSON between tags.

    Raises:
        UsageError: another notation.
    """
    if form == "python":
        listed = (f"{c.name}({', '.join(f'{k}={v!r}' for k, v in (c.arguments or {}).items())})" for c in made)
        return ", ".join(listed)
    if form not in ("auto", "tags"):
        raise UsageError(f'calls are demonstrated as tags or python, not as {form!r}; set calls = "tags"')
    bodies = (json.dumps({"name": c.name, "arguments": dict(c.arguments or {})}, ensure_ascii=False) for c in made)
    return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)


def without_calls(text: str, calls: Sequence[ToolCall], start: int = 0) -> str:
    """Return what a text says from character ``start`` on beside its calls."""
    rest, at = "", start
    for call in calls:
        rest, at = rest + text[at : call.start], max(at, call.end)
    return rest + text[at:]


def _pieces(text: str, opening: str, closing: str) -> list[tuple[int, int, bool]]:
    """Return where each call with tags stands, and whether it is closed before the next one opens."""
    out, position = [], 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        following = text.find(opening, start + len(opening))
        if end < 0 or 0 <= following < end:
            position = following if following >= 0 else len(text)
            out.append((start, position, False))
        else:
            position = end + len(closing)
            out.append((start, position, True))
    return out


def _read(text: str, form: Format, start: int, end: int, known: dict[str, Tool]) -> list[ToolCall]:
    try:
        calls = read_calls(text, form)
    except BadCall as error:
        problem: Problem = "no_name" if isinstance(error, NoName) else "not_json"
        return [ToolCall("", None, start, end, problem, str(error))]
    return [_checked(call, start, end, known) for call in calls]


def _checked(call: Call, start: int, end: int, known: dict[str, Tool]) -> ToolCall:
    tool = known.get(call.name)
    if tool is None:
        reason = f"there is no tool {call.name[:60]!r}; there are {', '.join(sorted(known)) or 'none'}"
        return ToolCall(call.name, call.arguments, start, end, "unknown_tool", reason)
    if reason := misfit(dict(call.arguments), tool.parameters):
        return ToolCall(call.name, call.arguments, start, end, "bad_arguments", f"{call.name}: {reason}")
    return ToolCall(call.name, call.arguments, start, end)


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def misfit(value: Any, schema: Any, where: str = "") -> str:
    """Return how a JSON value does not fit a schema, empty where it fits.

    Of JSON Schema it looks at ``type``, ``enum``, ``const``, ``anyOf``, ``required``, ``properties``,
    ``additionalProperties``, ``items`` and the bounds on numbers; a tool checks for itself what goes beyond.
    """
    if not isinstance(schema, dict):
        return ""
    here = where or "arguments"
    if "anyOf" in schema and all(misfit(value, option, where) for option in schema["anyOf"]):
        return f"{here}: {_short(value)} fits none of its types"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{here}: {_short(value)} is no {' or '.join(kinds)}"
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        return f"{here}: {_short(value)} is none of {', '.join(map(_short, schema['enum']))}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{here}: {_short(value)} is not {_short(schema['const'])}"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{here}: {value} is out of range"
    if isinstance(value, list):
        found = (misfit(item, schema.get("items"), f"{where}[{i}]") for i, item in enumerate(value))
        return next((reason for reason in found if reason), "")
    if not isinstance(value, dict):
        return ""
    properties = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            return f"{where + '.' if where else ''}{key} is missing"
    for key, item in value.items():
        inner = f"{where + '.' if where else ''}{key}"
        rest = schema.get("additionalProperties", True)
        if key not in properties and rest is False:
            return f"there is no {inner}"
        if reason := misfit(item, properties.get(key, rest), inner):
            return reason
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES.get(kind, (object,)))


def _same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: true is not 1."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
