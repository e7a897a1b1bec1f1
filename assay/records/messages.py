"""Chat messages as servers and data sets write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.types import Message

BESIDE = ("tool_calls", "tool_call_id", "name")
"""What a message may have beside its role and its content."""


def message(said: Any) -> Message:
    """Return a message: its content is a text, or parts of which each is one; one that calls tools needs none.

    Raises:
        ValueError: it is none, or has another content.
    """
    if not isinstance(said, Mapping) or "role" not in said or ("content" not in said and not said.get("tool_calls")):
        raise ValueError(f"{str(said)[:80]!r}, not a message with role and content")
    content = said.get("content")
    if content is None and said.get("tool_calls"):
        content = ""
    beside: Any = {key: said[key] for key in BESIDE if said.get(key)}  # Parquet has null for what is not there
    return Message(role=str(said["role"]), content=_text(content), **beside)


def among(prompt: Any, messages: Sequence[Message]) -> bool:
    """Whether a prompt, a text or messages, is what a conversation has: one of its messages, or all of them."""
    if isinstance(prompt, str):
        return any(prompt == m["content"] for m in messages)
    return isinstance(prompt, list) and list(map(message, prompt)) == list(messages)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"the content {str(content)[:60]!r}, not a text")
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the content {str(content)[:60]!r}, not a text or parts that are texts")
    return "".join(map(str, texts))
