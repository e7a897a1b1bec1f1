"""What a program and a model said to each other, as the very tokens that were sampled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.engines.tokens import Tokens
from assay.environments.calls import find_calls, without_calls, written
from assay.rollout.turns.by_messages import as_messages
from assay.types import Episode, Fork, Message, Origin, Stop, Tool, ToolCall, Turn


class Unasked(Exception):
    """A request that is refused, with the status it is answered by."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Thread:
    """One conversation: a prompt, and pieces of tokens after it, sampled or not.

    Attributes:
        said: its messages, as :func:`told_apart` tells them apart.
        turns: start and end of each sampled piece among its tokens, and the episode it was sampled in.
    """

    prompt: np.ndarray
    tools: tuple[Tool, ...]
    said: list[tuple[str, ...]] = field(default_factory=list)
    pieces: list[np.ndarray] = field(default_factory=list)
    turns: list[tuple[int, Episode]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def ended(self) -> bool:
        return not self.turns or self.turns[-1][1].stop == "eos"


@dataclass(slots=True)
class Usage:
    """What was asked of a model: requests, refused ones among them, and the tokens it read and wrote for them.

    A conversation that goes on is read anew by every request, whatever an engine keeps of it.
    """

    requests: int = 0
    refused: int = 0
    read: int = 0
    written: int = 0


class Recording:
    """What goes on under one key: an episode of a task, in however many conversations.

    A request whose messages are those of a conversation, as far as it has got, and further ones goes on from its
    tokens; of several the longest. Any other begins a conversation anew, from what the template makes of it.

    Args:
        key: of the trajectory.
        sampling: of a turn; requests may ask for fewer tokens.
        turns: answers at most.

    Attributes:
        usage: what was asked so far.
        heard: the conversation of the last request that was answered, and the answer.
    """

    def __init__(self, key: str, sampling: Sampling, turns: int, rng: np.random.Generator):
        self.key, self.sampling, self.turns, self.rng = key, sampling, turns, rng
        self.threads: list[Thread] = []
        self.answered = 0
        self.stop: Stop | None = None
        self.usage = Usage()
        self.heard: list[Message] = []

    def request(self, body: Mapping[str, Any], engine: Any) -> tuple[Thread, Request]:
        """Return the conversation that a request goes on with, and what is to be generated.

        Raises:
            Unasked: it cannot be read, or a limit is reached.
        """
        self.usage.requests += 1
        messages, tools, most = _read(body)
        if self.answered >= self.turns:
            self.stop = "turns"
            raise Unasked(f"this episode has had its {self.turns} answers", 429)
        names = [told_apart(m) for m in messages]
        known = [t for t in self.threads if t.said == names[: len(t.said)] and t.tools == tools]
        rest = messages[len(max(known, key=lambda t: len(t.said)).said) :] if known else []
        if known and rest and not any(m["role"] in ("assistant", "system") for m in rest):
            thread = max(known, key=lambda t: len(t.said))
            thread.pieces.append(engine.bridge(rest, thread.ended))
            thread.said = names
        else:
            thread = Thread(engine.opening(messages, tools), tools, names)
            self.threads.append(thread)
        prefix = tuple(np.concatenate([np.zeros(0, np.int64), *thread.pieces]).tolist())
        if len(thread.prompt) + len(prefix) >= engine.window:
            self.stop = "context"
            raise Unasked(f"the model's context of {engine.window} tokens is full")
        self.heard = messages
        self.usage.read += len(thread.prompt) + len(prefix)
        sampling = replace(self.sampling, max_tokens=min(self.sampling.max_tokens, most or self.sampling.max_tokens))
        seed = int(self.rng.integers(2**63))
        if getattr(engine, "by_messages", False):
            return thread, Request(as_messages(_told(messages), tools), 1, sampling, seed)
        return thread, Request(Tokens(thread.prompt), 1, sampling, seed, prefix, session=self.key)

    def answer(self, thread: Thread, made: Episode) -> dict[str, Any]:
        """Note what was sampled; return it as a choice of the protocol's."""
        self.usage.written += len(made.tokens)
        self.heard = [*self.heard, Message(role="assistant", content=made.text)]
        thread.turns.append((thread.length, made))
        thread.pieces.append(made.tokens)
        self.answered += 1
        message, calls = said_by(made.text, thread.tools, f"{len(self.threads)}_{len(thread.turns)}")
        thread.said.append(told_apart(message))
        reason = "length" if made.truncated else "tool_calls" if calls else "stop"
        return {"index": 0, "message": message, "finish_reason": reason, "token_ids": made.tokens.tolist()}

    def episode(self, engine: Engine, text: str) -> Episode:
        """Return all of it as one response; each conversation is a row that it forks into.

        Args:
            text: what is judged.
        """
        threads = [t for t in self.threads if t.turns]
        if not threads:
            threads = [Thread(engine.encode(""), ())]
        forks, turns, parts, start = list[Fork](), list[Turn](), list[Episode](), 0
        for thread in threads:
            if start:
                forks.append(Fork(start, thread.prompt))
            for at, made in thread.turns:
                first = start + at
                calls = find_calls(made.text, thread.tools) if thread.tools else ()
                valid = not any(c.problem for c in calls)
                end = first + len(made.tokens)
                turns.append(Turn(len(turns), first, end, valid=valid, truncated=made.truncated, text=made.text))
                parts.append(made)
            # What came after its last answer nobody has sampled anything after.
            start += thread.turns[-1][0] + len(thread.turns[-1][1].tokens) if thread.turns else 0
        tokens, own = np.zeros(start, dtype=np.int64), np.zeros(start, dtype=bool)
        logprobs = np.full((2, start), np.nan, dtype=np.float32)
        whole = [np.concatenate(t.pieces)[: t.turns[-1][0] + len(t.turns[-1][1].tokens)] for t in threads if t.turns]
        tokens[:] = np.concatenate([np.zeros(0, np.int64), *whole])
        for turn, made in zip(turns, parts, strict=True):
            here = slice(turn.start, turn.end)
            own[here] = True
            for row, told in enumerate((made.logprobs, made.entropies)):
                logprobs[row, here] = np.nan if told is None else told
        stop = self.stop or (parts[-1].stop if parts else "error")
        return Episode(
            prompt=threads[0].prompt,
            tokens=tokens,
            mask=own,
            logprobs=logprobs[0],
            text=text,
            stop=stop,
            entropies=logprobs[1],
            origins=np.where(own, Origin.OWN, Origin.TOOL).astype(np.uint8),
            turns=tuple(turns),
            forks=tuple(forks),
            trajectory=self.key,
        )


def said_by(text: str, tools: Sequence[Tool], name: str) -> tuple[dict[str, Any], list[Any]]:
    """Return what a model wrote as a message of the protocol, and the calls in it, whose ids begin with ``name``."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    calls = [c for c in find_calls(text, tools) if c.arguments is not None] if tools else []
    if calls:
        rest = without_calls(text, calls)
        told = [
            {
                "id": f"call_{name}_{i}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(dict(c.arguments or {}), ensure_ascii=False)},
            }
            for i, c in enumerate(calls)
        ]
        message |= {"content": rest if rest.strip() else None, "tool_calls": told}
    return message, calls


def told_apart(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what makes a message another one: who says what, calls what, answers what."""
    calls = [str(c.get("id", "")) for c in message.get("tool_calls") or []]
    content = (message.get("content") or "").strip()
    return message["role"], content, str(message.get("tool_call_id") or ""), *calls


def _read(body: Mapping[str, Any]) -> tuple[list[Message], tuple[Tool, ...], int | None]:
    """Return a request's messages, tools, and the most tokens it wants."""
    try:
        messages = [_message(m) for m in body["messages"]]
        tools = tuple(
            Tool(f["name"], f.get("description") or "", f.get("parameters") or {"type": "object", "properties": {}})
            for f in (t["function"] for t in body.get("tools") or [])
        )
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        if not messages or not (most is None or (isinstance(most, int) and most > 0)):
            raise ValueError("messages are missing, or max_tokens is no number of tokens")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unasked(f"the request cannot be read: {type(error).__name__}: {error}") from None
    return messages, tools, most


def _message(said: Mapping[str, Any]) -> Message:
    content = said.get("content") or ""
    if not isinstance(content, str):
        content = "".join(part["text"] for part in content)
    message = {**said, "role": str(said["role"]), "content": content}
    kept = ("role", "content", "tool_calls", "tool_call_id", "name")
    found = {k: v for k, v in message.items() if k in kept and v is not None}
    if "tool_calls" in found:
        found["tool_calls"] = [_call(c) for c in found["tool_calls"]]
    return Message(**found)  # type: ignore[typeddict-item]


def _told(messages: Sequence[Message]) -> list[Message]:
    """Return messages whose calls stand in their text, as an engine that is asked by messages reads them."""
    out = []
    for message in messages:
        made: Any = message.get("tool_calls") or ()
        functions = [c["function"] for c in made if isinstance(c["function"].get("arguments"), dict)]
        calls = [ToolCall(f["name"], f["arguments"], 0, 0) for f in functions]
        said = "\n".join(filter(None, [message["content"], written(calls)]))
        out.append(Message(role=message["role"], content=said if calls else message["content"]))
    return out


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as chat templates take it, its arguments as an object where they are one."""
    function = dict(call["function"])
    with suppress(TypeError, ValueError):
        function["arguments"] = json.loads(function["arguments"])
    return {**call, "function": function}
