"""A conversation as tokens: how it opens, and what stands between one sampled turn and the next.

What was sampled is never written out and tokenised again: a turn's tokens stay what they are, and what follows them is
the chat template's text from the end of a turn on, which does not depend on what the turn said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import TemplateError

from assay.errors import UsageError
from assay.types import Message, Tool

TURN = "\u2402\u2403"
"""Stands for what a model said; no template writes it. The first one in a text is ours, whatever messages say."""


def opening(tokenizer: Any, chat: bool, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
    """Return the tokens ``(P,)`` that the first turn is sampled after.

    Args:
        chat: whether the tokenizer's template is applied; without one, messages are lines, and tools are not told of.
        tools: that the template tells the model of.

    Raises:
        UsageError: the template refuses the messages.
    """
    if chat:
        text, special = _rendered(tokenizer, messages, tools), False
    else:
        text, special = "\n".join(m["content"] for m in messages), True
    ids = tokenizer(text, add_special_tokens=special)["input_ids"]
    return np.asarray(ids, dtype=np.int64)


def bridge(tokenizer: Any, chat: bool, messages: Sequence[Message], ended: bool, stop_ids: Sequence[int]) -> np.ndarray:
    """Return the tokens ``(B,)`` between a sampled turn and the next one.

    Args:
        messages: that came in between.
        ended: whether the turn's last token ended it; else the end stands in the bridge.
        stop_ids: tokens that end a turn, the tokenizer's own first.

    Raises:
        UsageError: the template refuses the messages.
    """
    if chat:
        before = [Message(role="user", content="?"), Message(role="assistant", content=TURN)]
        text = _rendered(tokenizer, [*before, *messages], ()).partition(TURN)[2]
    else:
        text = "".join(f"\n{m['content']}" for m in messages) + "\n"
    ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    begins = bool(ids) and ids[0] in stop_ids
    if ended:
        ids = ids[1:] if begins else ids
    elif not begins:
        ids = [stop_ids[0], *ids]
    return np.asarray(ids, dtype=np.int64)


def drops_thinking(tokenizer: Any, chat: bool, messages: Sequence[Message]) -> bool:
    """Whether the chat template leaves out what a turn thought, between ``<think>`` and ``</think>``, once ``messages``
    have come after it."""
    if not chat:
        return False
    thought = Message(role="assistant", content=f"<think>\n{TURN}\n</think>\n\n.")
    return TURN not in _rendered(tokenizer, [Message(role="user", content="?"), thought, *messages], ())


def _rendered(tokenizer: Any, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    told = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    try:
        return str(
            tokenizer.apply_chat_template(
                list(messages), tools=told or None, add_generation_prompt=True, tokenize=False
            )
        )
    except TemplateError as error:
        raise UsageError(
            f"the model's chat template refuses a conversation: {error}; mend its messages or set model.chat = never"
        ) from error
