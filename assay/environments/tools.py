"""Environments whose actions are calls of tools: methods of a class, marked with :func:`tool`."""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from assay.environments.base import Action, Observation, Step
from assay.environments.calls import misfit, written
from assay.errors import UsageError
from assay.tasks.base import TaskSource
from assay.types import Message, Prompt, Task, Tool, ToolCall, Verdict
from assay.verify.make import by_kind

F = TypeVar("F", bound=Callable[..., Any])


_by_kind = functools.cache(by_kind)


def judged(task: Task, response: str) -> Verdict:
    """Return the verdict of the verifier that the task's kind names."""
    return _by_kind()(task, response)


class ToolError(Exception):
    """A tool refuses: the message is what the policy is told."""


def tool(method: F) -> F:
    """Mark a method of a :class:`ToolEnvironment` as a tool.

    Its parameters' hints become the schema of its arguments, its docstring the description. What it returns is shown to
    the policy: text as it is, anything else as JSON.
    """
    method.is_tool = True  # type: ignore[attr-defined]
    return method


def tool_of(function: Callable[..., Any], name: str | None = None) -> Tool:
    """Return a function as a tool.

    Raises:
        UsageError: a parameter has no type, or one that JSON cannot have.
    """
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError

    name = name or function.__name__
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"tool {name}: its parameter {parameter.name} needs a type, such as {parameter.name}: str")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    try:
        schema = create_model(name, __config__=ConfigDict(extra="forbid"), **fields).model_json_schema()
    except PydanticUserError as error:
        raise UsageError(f"tool {name}: JSON has no such argument: {str(error).splitlines()[0]}") from None
    return Tool(name, inspect.getdoc(function) or "", _plain(schema))


def _plain(schema: Any) -> Any:
    """Return a schema without the titles that pydantic adds, a property called ``title`` apart."""
    if isinstance(schema, Mapping):
        return {k: _plain(v) for k, v in schema.items() if k != "title" or not isinstance(v, str)}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def call(name: str, /, **arguments: Any) -> Action:
    """Return the action that calls one tool, as an environment's ``gold`` has it."""
    return calls((name, arguments))


def calls(*made: tuple[str, Mapping[str, Any]]) -> Action:
    """Return the action that calls several tools in one turn, each by its name and arguments."""
    text, placed = "", list[ToolCall]()
    for i, (name, arguments) in enumerate(made):
        start = len(text) + bool(text)
        text = f"{text}\n" * bool(text) + written([ToolCall(name, arguments, 0, 0)])
        placed.append(ToolCall(name, arguments, start, len(text), id=f"call_{i}"))
    return Action(text, tuple(placed))


def say(text: str) -> Action:
    """Return the action that says something and calls nothing."""
    return Action(text)


class ToolEnvironment:
    """An environment made of its tools: what is left to write is ``tasks``, ``begin``, the tools and the verdict.

    A turn without a call is something said to the user: :meth:`said` answers it, or ends the episode, which is what it
    does unless overridden; what was said last is :attr:`answer`. Several calls of a turn are made in their order. A
    call that cannot be read, names no tool, does not fit its schema or is refused (:class:`ToolError`) is answered with
    the reason, and makes the turn invalid; it is not made.

    The verdict is that of the verifier of the task's kind on the JSON of :meth:`state_json`, unless
    :meth:`verdict` is overridden.
    """

    answer: str | None = None
    _under_way = False

    # What a subclass has

    def tasks(self) -> TaskSource:
        """Return the tasks that can be set."""
        raise NotImplementedError(f"{type(self).__name__} has no tasks(): give it one, or tasks.source in the recipe")

    def begin(self, task: Task, seed: int) -> Prompt | None:
        """Prepare the state for a task; return what the policy is shown first, if it is not the task's prompt."""
        return None

    def available(self) -> tuple[Tool, ...]:
        """Return the tools of this episode; by default the class's."""
        return self.tools()

    def make_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Make a call of an available tool, whose schema the arguments fit; by default of the method of its name.

        Raises:
            ToolError: it refuses; the message is what the policy is told.
        """
        return getattr(self, name)(**arguments)

    def said(self, text: str) -> str | None:
        """Answer what was said to the user; ``None`` ends the episode.

        Raises:
            ToolError: it is refused; the message is the answer, and the turn is invalid.
        """
        return None

    def state_json(self) -> Any:
        """Return the state as JSON has it."""
        raise NotImplementedError(f"{type(self).__name__} needs state_json(), or a verdict() of its own")

    def state_key(self) -> str | None:
        """Return a key of the state, equal for states that are equivalent; ``None`` where credit needs none."""
        return None

    def over(self) -> bool:
        """Whether a call has just ended the episode."""
        return False

    def turn_reward(self) -> float | None:
        """Return the reward of the turn that was just taken; ``None`` where turns have none."""
        return None

    def verdict(self) -> Verdict:
        """Judge the state, by the verifier that the task's kind names."""
        return judged(self.task, json.dumps(self.state_json(), sort_keys=True, ensure_ascii=False))

    def close(self) -> None:
        """Free what the episode holds."""
        self._under_way = False

    # What follows from it

    @classmethod
    def tools(cls) -> tuple[Tool, ...]:
        """Return the class's tools, by name."""
        if "_tools" not in cls.__dict__:
            named = [n for n in dir(cls) if getattr(inspect.getattr_static(cls, n), "is_tool", False)]
            cls._tools = tuple(tool_of(getattr(cls, name), name) for name in sorted(named))
        return cls._tools  # type: ignore[return-value]

    _tools: tuple[Tool, ...] | None = None

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.answer, self._under_way = task, None, True
        shown = self.begin(task, seed)
        shown = task.prompt if shown is None else shown
        messages = (Message(role="user", content=shown),) if isinstance(shown, str) else tuple(shown)
        return Observation(messages, self.available(), self.state_key())

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        if not action.calls:
            self.answer, error = action.text, ""
            try:
                reply = self.said(action.text)
            except ToolError as refused:
                reply = error = str(refused)
            self._under_way = reply is not None and not self.over()
            said = () if reply is None else (Message(role="user", content=reply),)
            shown = Observation(said, (), self.state_key())
            return Step(shown, self.turn_reward(), not self._under_way, valid=not error, error=error)
        messages, errors = [], []
        for made in action.calls:
            text, error = self._call(made)
            messages.append(Message(role="tool", content=text, tool_call_id=made.id, name=made.name))
            if error:
                errors.append(error)
            if self.over():
                self._under_way = False
                break
        return Step(
            Observation(tuple(messages), (), self.state_key()),
            self.turn_reward(),
            not self._under_way,
            valid=not errors,
            error="; ".join(errors),
        )

    def _call(self, made: ToolCall) -> tuple[str, str]:
        """Return what a call is answered with, and what was wrong with it."""
        if made.problem or made.arguments is None:
            return f"error: {made.reason}", made.reason
        known = {t.name: t for t in self.available()}
        reason = f"there is no tool {made.name!r}" if made.name not in known else ""
        reason = reason or misfit(dict(made.arguments), known[made.name].parameters)
        if reason:
            return f"error: {reason}", reason
        try:
            result = self.make_call(made.name, made.arguments)
        except ToolError as error:
            return f"error: {error}", str(error)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False), ""
