"""What OpenEnv's JSON says, in our nouns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assay.environments.base import Observation
from assay.types import Message, Tool


def tool_of(told: Mapping[str, Any]) -> Tool:
    schema = told.get("input_schema") or told.get("inputSchema") or {"type": "object", "properties": {}}
    return Tool(str(told["name"]), str(told.get("description") or ""), schema)


def messages_of(seen: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return an observation as messages: its own, or one of the user."""
    told = seen.get("messages")
    if isinstance(told, list) and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in told):
        return tuple(told)
    content = {k: v for k, v in seen.items() if k not in ("metadata", "reward", "done", "tools") and v is not None}
    texts = [v for v in content.values() if isinstance(v, str)]
    shown = texts[0] if len(content) == len(texts) == 1 else json.dumps(content, ensure_ascii=False)
    return (Message(role="user", content=shown),)


def result_of(seen: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a tool answered, and what was wrong."""
    error = seen.get("error")
    if isinstance(error, Mapping):
        reason = str(error.get("message", error))
        return str(seen["result"]) if isinstance(seen.get("result"), str) else f"error: {reason}", reason
    result = seen.get("result")
    # FastMCP's results hold their text in blocks, or what they stand for.
    if isinstance(result, Mapping) and "content" in result:
        blocks = [b.get("text", "") for b in result["content"] if isinstance(b, Mapping)]
        failed = bool(result.get("is_error") or result.get("isError"))
        text = "\n".join(blocks) if any(blocks) else json.dumps(result.get("data"))
        return text, text if failed else ""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False), ""


def observed(
    told: Mapping[str, Any] | None, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()
) -> Observation:
    """Return what is seen, with the state's key and the admissible actions of an environment that tells them."""
    seen = {} if told is None else told["observation"]
    state, admissible = seen.get("state"), seen.get("admissible")
    can = tuple(map(str, admissible)) if isinstance(admissible, list) else None
    return Observation(messages, tools, state if isinstance(state, str) else None, can)
