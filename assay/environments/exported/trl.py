"""An environment as TRL's ``environment_factory`` takes it: a class whose methods are tools."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.environments.base import EnvironmentFailure
from assay.environments.exported.episode import Episodes, text_of
from assay.environments.tools import call
from assay.errors import UsageError
from assay.types import Tool

HINTS: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
SAY = Tool(
    "act",
    "Take a turn.",
    {
        "type": "object",
        "properties": {"action": {"type": "string", "description": "What is said."}},
        "required": ["action"],
    },
)
"""The one tool of an environment that is played by words."""


class Exported:
    """Base of the classes that :func:`as_trl` makes; TRL takes public methods for tools, so all else is hidden."""

    _environment: Any = None
    _words = False

    def __init__(self) -> None:
        self._episodes, self._failure = Episodes(self._environment), ""

    def reset(self, **row: Any) -> str:
        """Begin an episode of the row's task, at ``index``; return what is said first."""
        self._failure = ""
        try:
            return text_of(self._episodes.begin(int(row["index"]), int(row["index"])))
        except EnvironmentFailure as error:
            self._failure = str(error)
            return ""

    def _take(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Make a call; a world that fails says so, and the episode has no reward then."""
        if self._failure or self._episodes.over:
            return f"error: {self._failure or 'the episode is over'}"
        given = {k: v for k, v in arguments.items() if v is not None}
        text = str(arguments.get("action", "")) if self._words else call(name, **given).text
        try:
            return text_of(self._episodes.act(text).observation)
        except EnvironmentFailure as error:
            self._failure = str(error)
            return f"error: {error}"

    def _score(self, last: str) -> float | None:
        """Return the verdict's score, with what was said last for the answer where nothing has ended the episode."""
        if not self._failure and not self._episodes.over and not self._words:
            try:
                self._episodes.act(last)
            except EnvironmentFailure as error:
                self._failure = str(error)
        verdict = self._episodes.verdict()
        return None if self._failure or verdict.passed is None else float(verdict.score)


def as_trl(environment: str | Mapping[str, Any]) -> type[Exported]:
    """Return the class for ``GRPOTrainer(environment_factory=...)``; its rewards are :func:`verdict`'s.

    Every tool of the environment is a method, with hints and a docstring made from its schema; one without tools has
    the tool ``act``, which says something. All tasks must have the same tools.

    Args:
        environment: its name, ``file.py:Class``, or a table with ``name`` and options.

    Raises:
        UsageError: there is no such environment, or a tool's name, or a parameter's, is none in Python.
    """
    probe = Episodes(environment)
    try:
        tools = probe.begin(0, 0).tools
    finally:
        probe.close()
    members = {tool.name: _method(tool) for tool in tools or (SAY,)}
    if taken := sorted({"reset", "get_reward"} & members.keys()):
        raise UsageError(f"TRL calls {taken[0]} itself; a tool cannot have its name")
    return type("Environment", (Exported,), {"_environment": environment, "_words": not tools, **members})


def rows(environment: str | Mapping[str, Any], count: int, start: int = 0) -> list[dict[str, Any]]:
    """Return the data set for ``GRPOTrainer``: the places of ``count`` tasks from ``start``, fewer if there are."""
    size = Episodes(environment).source.size
    last = start + count if size is None else min(size, start + count)
    # What is first said is appended to it by TRL.
    return [{"prompt": [{"role": "user", "content": ""}], "index": i} for i in range(start, last)]


def verdict(
    completions: Sequence[Sequence[Mapping[str, Any]]], environments: Sequence[Exported], **_: Any
) -> list[float | None]:
    """Return what each episode is worth, for ``GRPOTrainer(reward_funcs=...)``: its verdict's score.

    ``None``, which TRL leaves out, where the world has failed or the verdict abstains.
    """
    out = []
    for said, world in zip(completions, environments, strict=True):
        last = said[-1] if said else {}
        spoken = last.get("role") == "assistant" and not last.get("tool_calls")
        out.append(world._score(str(last.get("content") or "") if spoken else ""))
    return out


def _method(tool: Tool) -> Callable[..., str]:
    """Return a method that makes a call of a tool, as its schema says.

    Raises:
        UsageError: Python has no such name.
    """
    properties = tool.parameters.get("properties", {})
    for name in (tool.name, *properties):
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UsageError(f"tool {tool.name!r}: Python has no name {name!r} for it")
    required = set(tool.parameters.get("required", ()))
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    hints: dict[str, Any] = {}
    for name, schema in properties.items():
        given = HINTS.get(str(schema.get("type")), str)
        hints[name] = given if name in required else given | None
        default = inspect.Parameter.empty if name in required else schema.get("default")
        parameters.append(inspect.Parameter(name, kind, annotation=hints[name], default=default))

    def method(self: Exported, **arguments: Any) -> str:
        return self._take(tool.name, arguments)

    lines = [f"    {n}: {' '.join(str(s.get('description') or n).split())}" for n, s in properties.items()]
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join([tool.description or tool.name, "", *(["Args:", *lines] if lines else [])])
    method.__annotations__ = {**hints, "return": str}
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method
