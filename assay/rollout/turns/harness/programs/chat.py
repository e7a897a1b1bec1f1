"""Asking a model over the chat protocol, from the standard library alone."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

# The endpoint is on this machine: no proxy stands between.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Spent(Exception):
    """The endpoint answers no more: turns or the context are spent."""


def given() -> dict[str, Any]:
    """Return the task, from standard input."""
    found: dict[str, Any] = json.load(sys.stdin)
    return found


def ask(messages: Sequence[Any], tools: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the model's message.

    Raises:
        Spent: nothing more is answered.
        urllib.error.URLError: the endpoint failed.
    """
    body: dict[str, Any] = {"model": "policy", "messages": list(messages)}
    if tools:
        body["tools"] = [{"type": "function", "function": one} for one in tools]
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    try:
        with OPENER.open(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
            return message
    except urllib.error.HTTPError as error:
        if error.code in (400, 429):
            raise Spent(error.reason) from None
        raise
