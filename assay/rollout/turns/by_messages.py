"""A conversation for engines that are asked by messages: tools are told of in words, and calls read from the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from assay.media import Picture
from assay.types import Message, Tool, pictures

TOLD = """You can call these tools, whose arguments are JSON of the schema:
{tools}
To call one, write
<tool_call>
{{"name": "the tool's name", "arguments": {{...}}}}
</tool_call>"""


def as_messages(said: Sequence[Message], tools: Sequence[Tool]) -> tuple[Message, ...]:
    """Return a conversation that any server of the chat protocol takes.

    What tools answer is the user's, as the protocol has a tool's message only after a call in its own notation.
    """
    out: list[Message] = []
    for role, group in groupby(said, key=lambda m: m["role"]):
        messages = list(group)
        if role == "tool":
            joined = "\n".join(f"<tool_response>\n{m['content']}\n</tool_response>" for m in messages)
            out.append(_with(Message(role="user", content=joined), pictures(tuple(messages))))
        else:
            out += [_with(Message(role=role, content=m["content"]), m.get("images", ())) for m in messages]
    if not tools:
        return tuple(out)
    lines = [json.dumps({"name": t.name, "description": t.description, "parameters": t.parameters}) for t in tools]
    told = TOLD.format(tools="\n".join(lines))
    if out and out[0]["role"] == "system":
        return (Message(role="system", content=f"{out[0]['content']}\n\n{told}"), *out[1:])
    return (Message(role="system", content=told), *out)


def _with(message: Message, images: Sequence[Picture]) -> Message:
    return {**message, "images": tuple(images)} if images else message
