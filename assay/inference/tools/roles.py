"""What the roles are asked, and how their replies are read: who plans, who writes tools, who works, who answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from assay.inference.tools.code import FUNCTION, BadTool, MadeTool
from assay.types import Tool

MANAGER = """Question:
{question}

Tools there are:
{tools}

Which of them does it take, and what is missing? Write a line `USE name` for each tool it takes, and a line
`NEED name: what it does` for each that is missing: small ones, which other questions will want too. Names are words
joined by _. Write no other lines."""

DEVELOPER = """Write a tool `{name}` in Python: {purpose}

Reply with one block of code, ```python ... ```, that defines a function `run` whose parameters have types (int, float,
str, bool, list, dict) and a docstring that says what it does, and that returns plain data; and after it a line
`EXAMPLE {"parameter": value}` with arguments to try it on.{failures}"""

FAILURES = """

This did not work:
```python
{source}
```
{reasons}
Mend it. What it accepted it must accept still."""

EXECUTOR = """Question:
{question}

Tools:
{tools}

Call a tool by <tool_call>{"name": ..., "arguments": {...}}</tool_call>; what it gives will be shown. If a tool is
missing, write `NEED name: what it does`. When you know enough, write DONE.

{done}"""

INTEGRATOR = """{question}

What was found with tools:
{done}

Now answer."""

GROUPER = """Tools that were written for different questions:
{tools}

Which of them do the same? Two do if one function could stand for both, by other arguments alone: it works in the same
way, and what it returns is of the same kind. They do not where the action, the place it is done on, or what comes out
is another one. For each group that does the same write a line `SAME name: tool, tool, ...`, with a name for the one
tool that will stand for them, of words joined by _. A tool that is like no other is in no line. If none are alike,
write NONE. Write no other lines."""

MERGER = """These tools do the same. Write one that does what each of them does and takes the arguments of each.

{sources}

Reply with one block of code, ```python ... ```, that defines `run`."""

_USE = re.compile(r"^\s*USE\s+`?(\w{1,60})`?\s*$", re.MULTILINE)
_NEED = re.compile(r"^\s*NEED\s+`?([A-Za-z]\w{0,59})`?\s*:\s*(\S.*)$", re.MULTILINE)
_SAME = re.compile(r"^\s*SAME\s+`?([A-Za-z]\w{0,59})`?\s*:\s*(\S.*)$", re.MULTILINE)
_NONE = re.compile(r"^\s*NONE\W*$", re.MULTILINE)
_CODE = re.compile(r"```(?:python|py)?\s*\n(.*?)```", re.DOTALL)
_EXAMPLE = re.compile(r"^\s*EXAMPLE\s*:?\s*(\{.*\})\s*$", re.MULTILINE)


def described(tools: Sequence[Tool]) -> str:
    """Return a line for each tool: its name, what it does and the schema of its arguments."""
    lines = [f"{t.name}: {t.description} {json.dumps(t.parameters['properties'])}" for t in tools]
    return "\n".join(lines) or "none"


def planned(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the tools that a reply takes, and those that it asks for, with what they do."""
    return list(dict.fromkeys(_USE.findall(text))), {name.lower(): what.strip() for name, what in _NEED.findall(text)}


def grouped(text: str, names: Collection[str]) -> dict[str, list[str]] | None:
    """Return the groups of a reply, each by the name it is to have; ``None`` where it names a tool twice, or says
    nothing."""
    found = [(name.lower(), re.findall(r"\w+", listed)) for name, listed in _SAME.findall(text)]
    said = [tool for _, tools in found for tool in tools]
    if not (found or _NONE.search(text)) or len({*said}) < len(said) or not {*said} <= {*names}:
        return None
    return dict(found) if len(dict(found)) == len(found) else None


def written(name: str, text: str) -> tuple[MadeTool, dict[str, Any]]:
    """Return the tool in a developer's reply, and the arguments to try it on.

    Raises:
        BadTool: there is none, or nothing to try it on.
    """
    code, example = _CODE.findall(text), _EXAMPLE.findall(text)
    if not code:
        raise BadTool(f"there is no block of code that defines {FUNCTION}")
    tool = MadeTool(name, code[-1].strip() + "\n")
    required = tool.tool.parameters["required"]
    if not example and required:
        raise BadTool('there is no line EXAMPLE {"parameter": value}')
    try:
        tried = json.loads(example[-1]) if example else {}
    except (ValueError, RecursionError) as error:
        raise BadTool(f"the line EXAMPLE is no JSON: {error}") from None
    return tool, tried
