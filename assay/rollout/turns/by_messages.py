"""A conversation for engines that are asked by messages: tools are told of in words, and calls read from the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from assay.types import Message, Tool

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
    out = []
    for role, group in groupby(said, key=lambda m: m["role"]):
        texts = [m["content"] for m in group]
        if role == "tool":
            joined = "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in texts)
            out.append(Message(role="user", content=joined))
        else:
            out += [Message(role=role, content=text) for text in texts]
    if not tools:
        return tuple(out)
    lines = [json.dumps({"name": t.name, "description": t.description, "parameters": t.parameters}) for t in tools]
    told = TOLD.format(tools="\n".join(lines))
    if out and out[0]["role"] == "system":
        return (Message(role="system", content=f"{out[0]['content']}\n\n{told}"), *out[1:])
    return (Message(role="system", content=told), *out)
