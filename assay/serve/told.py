"""What a client is told: responses, whole or piece by piece."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.environments.calls import find_calls, without_calls
from assay.serve.asked import Asked
from assay.serve.decoding import ServedEngine
from assay.types import Episode, ToolCall

CALL = re.compile(r"<(?=\Z|[tf])|[{\[]")
"""Where what may be a tool call begins, or may be about to."""


class Detokenizer:
    """Turns tokens into text one by one: the texts joined are the text of all.

    A token that leaves a character incomplete has no text; the one that completes the character has all of it.
    """

    def __init__(self, engine: ServedEngine):
        self.engine = engine
        self.ids: list[int] = []
        self.start = self.read = 0

    def feed(self, token: int) -> str:
        self.ids.append(token)
        text, known = self.engine.decode(self.ids[self.start :]), self.engine.decode(self.ids[self.start : self.read])
        if text.endswith("\ufffd"):
            return ""
        # What comes before decides about a token's leading space, so a token or more of it stays in view.
        self.start, self.read = self.read, len(self.ids)
        return text[len(known) :]

    def rest(self) -> str:
        """Return what was held back as incomplete and will not be completed."""
        text, known = self.engine.decode(self.ids[self.start :]), self.engine.decode(self.ids[self.start : self.read])
        return text[len(known) :]


@dataclass(slots=True)
class Voice:
    """One response on its way to the client."""

    asked: Asked
    engine: ServedEngine
    text: str = ""
    shown: int = 0
    tokens: list[tuple[int, str, float]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"call_{secrets.token_hex(6)}")
    pieces: Detokenizer = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = Detokenizer(self.engine)

    def hear(self, token: int, logprob: float) -> str:
        """Take a token; return the text that can be shown by now."""
        new = self.pieces.feed(token)
        self.tokens.append((token, new, logprob))
        self.text += new
        stops = self.asked.fields.stops
        cut = self._cut()
        # The beginning of a stop string must not be shown before it is clear that it is none.
        safe = cut if cut is not None else len(self.text) - (max(map(len, stops)) - 1 if stops else 0)
        if self.asked.tools and (call := CALL.search(self.text)):
            safe = min(safe, call.start())  # nor what may be a call
        return self._show(safe)

    def end(self, last: bool = True) -> str:
        """Return the text not shown yet, when the response is over."""
        if last and (rest := self.pieces.rest()):
            token, text, logprob = self.tokens[-1]
            self.tokens[-1] = (token, text + rest, logprob)
            self.text += rest
        cut = self._cut()
        until = len(self.text) if cut is None else cut
        if not (self.asked.tools and last):
            return self._show(until)
        text, calls = self.text[:until], find_calls(self.text[:until], self.asked.tools)
        self.calls = [c for c in calls if c.arguments is not None]
        shown, self.shown = self.shown, until
        return without_calls(text, self.calls, shown)

    @property
    def stop(self) -> str | None:
        """The stop string that comes first in the text."""
        found = [(at, s) for s in self.asked.fields.stops if (at := self.text.find(s)) >= 0]
        return min(found)[1] if found else None

    def _cut(self) -> int | None:
        stop = self.stop
        if stop is None:
            return None
        return self.text.index(stop) + (len(stop) if self.asked.fields.include_stop_str_in_output else 0)

    def _show(self, until: int) -> str:
        new = self.text[self.shown : until] if until > self.shown else ""
        self.shown = max(self.shown, until)
        return new

    def choice(self, text: str, rows: Sequence[tuple[int, str, float]], index: int, piece: bool) -> dict[str, Any]:
        """Return a choice, or a piece of one, that says ``text`` and tells of the tokens ``rows``."""
        asked = self.asked
        choice: dict[str, Any] = {"index": index}
        if asked.chat:
            message: dict[str, Any] = {"role": "assistant", "content": text}
            if self.calls:
                message |= {"tool_calls": self._tool_calls(piece), "content": text if piece or text.strip() else None}
            choice["delta" if piece else "message"] = message
        else:
            choice["text"] = text
        choice["logprobs"] = self._logprobs(rows) if asked.logprobs else None
        choice["finish_reason"] = None
        if asked.fields.return_token_ids:
            choice["token_ids"] = [token for token, _, _ in rows]
        return choice

    def ending(self, episode: Episode) -> dict[str, Any]:
        """Return why a response ended, for its choice."""
        reason = "length" if episode.truncated else "tool_calls" if self.calls else "stop"
        return {"finish_reason": reason, "stop_reason": self.stop if episode.stop == "stop" else None}

    def _tool_calls(self, piece: bool) -> list[dict[str, Any]]:
        out = []
        for i, call in enumerate(self.calls):
            arguments = json.dumps(dict(call.arguments or {}), ensure_ascii=False)
            said = {
                "id": f"{self.name}-{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": arguments},
            }
            out.append({"index": i, **said} if piece else said)
        return out

    def _logprobs(self, rows: Sequence[tuple[int, str, float]]) -> dict[str, Any]:
        names = [text or str(self.engine.policy.tokenizer.convert_ids_to_tokens(token)) for token, text, _ in rows]
        data = [list(text.encode("utf-8", "replace")) for _, text, _ in rows]
        values = [value for _, _, value in rows]
        if self.asked.chat:
            content = [
                {"token": name, "bytes": b, "logprob": value, "top_logprobs": []}
                for name, b, value in zip(names, data, values, strict=True)
            ]
            return {"content": content, "refusal": None, "after_temperature": True}
        offsets, at = [], 0
        for _, text, _ in rows:
            offsets.append(at)
            at += len(text)
        told = {"tokens": names, "token_logprobs": values, "top_logprobs": None, "text_offset": offsets, "bytes": data}
        return {**told, "after_temperature": True}


def envelope(asked: Asked, name: str, piece: bool) -> dict[str, Any]:
    """Return what all answers to a request have in common; choices are still to come."""
    kind = ("chat.completion.chunk" if piece else "chat.completion") if asked.chat else "text_completion"
    prefix = "chatcmpl" if asked.chat else "cmpl"
    made = int(time.time())
    return {"id": f"{prefix}-{name}", "object": kind, "created": made, "model": asked.fields.model, "choices": []}


def usage(prompts: Sequence[int], rows: Sequence[Sequence[Episode]]) -> dict[str, int]:
    """Count tokens: each prompt once, whatever the number of its responses."""
    prompt, completion = sum(prompts), sum(len(e.tokens) for row in rows for e in row)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
