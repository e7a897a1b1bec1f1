"""Actions that are a line of text, one a turn: read from what was said or from a call of the tool ``act``."""

from __future__ import annotations

import re
from typing import Literal

from assay.environments.base import Action
from assay.environments.calls import THOUGHTS
from assay.types import Message, Tool

Interface = Literal["text", "tool"]

ACT = Tool(
    "act",
    "Take one action.",
    {
        "type": "object",
        "properties": {"action": {"type": "string"}},
        "required": ["action"],
        "additionalProperties": False,
    },
)
_MARKED = re.compile(r"<action>(.*?)</action>", re.DOTALL | re.IGNORECASE)


def last_line(text: str) -> str:
    """Return the action of a turn: what the last ``<action>...</action>`` holds, else the last line; thoughts apart."""
    text = THOUGHTS.sub(" ", text.rpartition("</think>")[2] if "<think>" not in text else text)
    marked = _MARKED.findall(text)
    lines = marked[-1:] or text.strip().splitlines()[-1:] or [""]
    return lines[0].strip()


def plain(line: str) -> str:
    """Return a line in lower case, with single blanks."""
    return " ".join(line.lower().split())


def read_action(text: str) -> str:
    """Return the action of a turn (:func:`last_line`) in lower case, with single blanks."""
    return plain(last_line(text))


def taken(action: Action, interface: Interface) -> tuple[str, str]:
    """Return the line that an action is, and what is wrong with how it was given."""
    if interface == "text":
        return last_line(action.text), ""
    if not action.calls:
        return "", "call the tool act"
    made = action.calls[0]
    line = (made.arguments or {}).get("action")
    if made.problem or made.name != ACT.name or not isinstance(line, str):
        return "", made.reason or "call the tool act with an action"
    return line.strip(), ""


def answered(action: Action, reply: str, error: str) -> tuple[tuple[Message, ...], str]:
    """Return what an action is answered by, and what was wrong with it: of several calls, one alone is made.

    ``reply`` is what is said, also of what was wrong.
    """
    if not action.calls:
        return (Message(role="user", content=reply),), error
    first, *others = action.calls
    texts = [(first, f"error: {reply}" if error else reply)]
    texts += [(c, "error: not made; one action a turn") for c in others]
    messages = tuple(Message(role="tool", content=text, tool_call_id=c.id, name=c.name) for c, text in texts)
    return messages, error or ("one action a turn" if others else "")


def how(interface: Interface) -> str:
    """Return how an action is to be given, in words."""
    return "the tool act" if interface == "tool" else "a line at the end of your turn"
