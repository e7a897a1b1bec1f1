"""One client's episodes in a served environment, in the words of OpenEnv's protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.calls import find_calls
from assay.environments.played import Played
from assay.environments.tools import call
from assay.errors import AssayError
from assay.tasks.base import TaskSource
from assay.types import Tool, Verdict

Code = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]


class Refused(Exception):
    """A message is answered by an error: OpenEnv's code for it, and the reason."""

    def __init__(self, code: Code, reason: str):
        super().__init__(reason)
        self.code = code


TEXT = {"type": "string", "description": "What is said in this turn, tool calls included, as a model writes them."}
ACTION: dict[str, Any] = {
    "title": "Turn",
    "type": "object",
    "required": ["text"],
    "properties": {
        "text": TEXT,
        "type": {"enum": ["call_tool", "list_tools"]},
        "tool_name": {"type": "string"},
        "arguments": {"type": "object"},
        "metadata": {"type": "object"},
    },
}
"""JSON Schema of what a client sends as an action: ``{"text": ...}``; a call of a tool, as MCP has it, needs none."""
OBSERVATION: dict[str, Any] = {
    "title": "Observation",
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "messages": {"type": "array", "items": {"type": "object"}},
        "tools": {"type": "array", "items": {"type": "object"}},
        "state": {"type": ["string", "null"]},
        "admissible": {"type": ["array", "null"], "items": {"type": "string"}},
        "valid": {"type": "boolean"},
        "error": {"type": ["string", "null"]},
        "metadata": {"type": "object"},
    },
}
STATE: dict[str, Any] = {
    "title": "State",
    "type": "object",
    "properties": {"episode_id": {"type": ["string", "null"]}, "step_count": {"type": "integer"}},
}


class Session:
    """The episodes of one client, one after the other.

    Args:
        worlds: makes environments.
        source: its tasks.
        tools: there are before an episode has begun.
        turns: of an episode, at most.
        default: place of the task of a reset that names none.
    """

    def __init__(self, worlds: Any, source: TaskSource, tools: tuple[Tool, ...], turns: int, default: int):
        self.worlds, self.source, self.tools, self.turns, self.default = worlds, source, tools, turns, default
        self.played: Played | None = None
        self.count, self.id, self.over = 0, "", True

    def reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode: of the task at ``index``, else at the seed's place, else of the next that nobody has had.

        Raises:
            Refused: there is no such task, or the environment failed.
        """
        self.close()
        seed, index = (_whole(data, name) for name in ("seed", "index"))
        place = index if index is not None else seed if seed is not None else self.default
        size = self.source.size
        if index is None and size is not None:
            place %= size
        try:
            task = self.source[place]
        except IndexError as error:
            raise Refused("VALIDATION_ERROR", f"index {place}: {error}") from None
        self.played = Played(self.worlds, task, place if seed is None else seed)
        shown = self._tried(self.played.reset)
        self.count, self.over, self.tools = 0, False, shown.tools
        digest = hashlib.blake2b(f"{task.id}/{seed}".encode(), digest_size=8).hexdigest()
        self.id = str(data.get("episode_id") or digest)
        told = _told(shown) | {"tools": [_tool(t) for t in shown.tools], "valid": True, "error": None}
        return _answer(told, None, False, {"task": task.id, "index": place})

    def step(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Take an action; the last one's reward is the verdict's score, and the verdict is in the metadata.

        Raises:
            Refused: it is no action, no episode is under way, or the environment failed.
        """
        kind = data.get("type")
        if kind == "list_tools":
            return _answer({"tools": [_tool(t) for t in self.tools]}, None, self.over and self.count > 0, {})
        if self.played is None or self.over:
            raise Refused("EXECUTION_ERROR", "no episode is under way; reset first")
        action = self._action(data, kind)
        step: Step = self._tried(self.played.step, action)
        self.count += 1
        truncated = not step.terminated and (step.truncated or self.count >= self.turns)
        self.over = step.terminated or truncated
        metadata: dict[str, Any] = {"turn_reward": step.reward, "truncated": truncated}
        reward = None
        if self.over:
            verdict = self.played.verdict()
            metadata["verdict"] = _verdict(verdict)
            reward = None if verdict.passed is None else verdict.score
            self.played.close()
        told: dict[str, Any] = _told(step.observation) | {"valid": step.valid, "error": step.error or None}
        if kind == "call_tool":
            told |= {"tool_name": data["tool_name"], "result": told["text"]}
            told["error"] = {"error_type": "execution_error", "message": step.error} if step.error else None
        return _answer(told, reward, self.over, metadata)

    def state(self) -> dict[str, Any]:
        return {"episode_id": self.id or None, "step_count": self.count}

    def close(self) -> None:
        """Free what the episode holds."""
        if self.played is not None:
            self.played.close()
        self.played, self.over = None, True

    def _action(self, data: Mapping[str, Any], kind: Any) -> Action:
        if kind == "call_tool":
            name, arguments = data.get("tool_name"), data.get("arguments", {})
            if not isinstance(name, str) or not isinstance(arguments, Mapping):
                raise Refused("VALIDATION_ERROR", "call_tool needs a tool_name and an object of arguments")
            text = call(name, **arguments).text
            return Action(text, find_calls(text, self.tools, "tags"))
        said = data.get("text")
        if not isinstance(said, str) or kind is not None:
            raise Refused("VALIDATION_ERROR", 'an action is {"text": "..."}, or of type call_tool or list_tools')
        return Action(said, find_calls(said, self.tools) if self.tools else ())

    def _tried(self, make: Any, *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except EnvironmentFailure as error:
            self.close()
            raise Refused("EXECUTION_ERROR", str(error)) from None
        except AssayError as error:
            self.close()
            raise Refused("VALIDATION_ERROR", str(error)) from None


def _whole(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise Refused("VALIDATION_ERROR", f"{name} must be a whole number from 0, not {value!r}"[:200])
    return value


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _told(shown: Observation) -> dict[str, Any]:
    messages = [dict(m) for m in shown.messages]
    text = "\n".join(str(m["content"]) for m in messages)
    admissible = None if shown.admissible is None else list(shown.admissible)
    return {"text": text, "messages": messages, "state": shown.state, "admissible": admissible}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {"score": verdict.score, "passed": verdict.passed, "feedback": verdict.feedback, "fault": verdict.fault}


def _answer(observation: dict[str, Any], reward: float | None, done: bool, metadata: dict[str, Any]) -> dict[str, Any]:
    # Typed clients read the metadata within the observation, others beside it.
    return {
        "observation": {**observation, "metadata": metadata},
        "reward": reward,
        "done": done,
        "metadata": metadata,
    }
