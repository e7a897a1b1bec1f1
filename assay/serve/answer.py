"""Answers to a request: whole, or as the events of a stream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import RunError, UsageError
from assay.serve.asked import Asked, Refusal
from assay.serve.batcher import Event, Token
from assay.serve.decoding import ServedEngine
from assay.serve.told import Voice, envelope, usage
from assay.types import Episode


def refusal(error: Exception) -> Refusal:
    """Return what the client hears of what went wrong here."""
    if isinstance(error, UsageError):
        return Refusal(str(error))
    stopping = isinstance(error, RunError)
    return Refusal(f"{'' if stopping else type(error).__name__ + ': '}{error}", status=503 if stopping else 500)


def whole(asked: Asked, engine: ServedEngine, rows: list[list[Episode]]) -> dict[str, Any]:
    """Return the whole answer."""
    answer = envelope(asked, uuid.uuid4().hex, piece=False)
    for episode, prompt in ((e, e.prompt) for row in rows for e in row):
        voice = Voice(asked, engine)
        assert episode.logprobs is not None
        shown = [voice.hear(*at) for at in zip(episode.tokens.tolist(), episode.logprobs.tolist(), strict=True)]
        text = "".join([*shown, voice.end()])
        choice = voice.choice(text, voice.tokens, len(answer["choices"]), piece=False) | voice.ending(episode)
        if asked.fields.return_token_ids:
            choice["prompt_token_ids"] = prompt.tolist()
        answer["choices"].append(choice)
    return answer | {"usage": usage([len(row[0].prompt) for row in rows], rows)}


class Pieces:
    """The server-sent events of one answer: one for every token that shows, an ending for every response, the usage."""

    def __init__(self, asked: Asked, engine: ServedEngine):
        self.asked, self.n, self.name = asked, asked.fields.n, uuid.uuid4().hex
        self.voices = [Voice(asked, engine) for _ in range(self.n * len(asked.prompts))]
        self.told = [0] * len(self.voices)

    def of(self, events: Iterable[Event]) -> bytes:
        """Return what events make the client hear."""
        return b"".join(piece for event in events for piece in self._event(event))

    def _event(self, event: Event) -> list[bytes]:
        if isinstance(event, Token):
            index = event.request * self.n + event.sample
            text = self.voices[index].hear(event.token, event.logprob)
            return [self._piece(index, text, {})] if text else []
        if isinstance(event, Exception):
            return [_data(refusal(event).plain())]
        episodes = enumerate(e for row in event for e in row)
        out = [self._piece(i, self.voices[i].end(), self.voices[i].ending(episode)) for i, episode in episodes]
        if self.asked.fields.stream_options.include_usage:
            counted = usage([len(row[0].prompt) for row in event], event)
            out.append(_data(envelope(self.asked, self.name, piece=True) | {"usage": counted}))
        return [*out, b"data: [DONE]\n\n"]

    def _piece(self, index: int, text: str, more: Mapping[str, Any]) -> bytes:
        voice = self.voices[index]
        rows = voice.tokens[self.told[index] :]
        self.told[index] = len(voice.tokens)
        piece = envelope(self.asked, self.name, piece=True)
        piece["choices"] = [voice.choice(text, rows, index, piece=True) | dict(more)]
        return _data(piece)


def _data(content: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"
