"""OpenAI's protocol: requests as bodies, answers as episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.engines.base import Request
from assay.engines.openai.client import Unsound
from assay.engines.openai.vocabulary import Alphabet, Piece, Tokenizer
from assay.errors import UsageError
from assay.media import MARK
from assay.types import Episode, Message, Prompt, Stop

Api = Literal["chat", "completions"]

OPTIONAL = frozenset({"logprobs", "top_logprobs", "return_token_ids", "include_stop_str_in_output"})
"""What a server may refuse and is then not asked for: without it, less is known of a response, which stays the same."""

ENDED: dict[str, Stop] = {"length": "length", "content_filter": "error", "abort": "error", "error": "error"}


@dataclass(frozen=True, slots=True)
class Wire:
    """How requests are put; see :func:`assay.engines.openai.engine.openai_engine`."""

    model: str
    vocabulary: Alphabet | Tokenizer
    api: Api = "chat"
    logprobs: bool = True
    after_temperature: bool = False
    continues: bool = False
    schema: Mapping[str, Any] | None = None
    max_tokens_field: str = "max_tokens"
    omit: frozenset[str] = frozenset()
    extra: Mapping[str, Any] = field(default_factory=dict)
    system: str | None = None

    @property
    def path(self) -> str:
        return "/chat/completions" if self.api == "chat" else "/completions"

    def check(self, request: Request) -> None:
        """Raise UsageError for what the protocol cannot ask."""
        if request.beam or request.within is not None:
            what = "search by beams" if request.beam else "confine a response to a catalogue"
            raise UsageError(f"engine 'openai' cannot {what}; use engine hf")
        if len(request.prefix) and self.api == "chat" and not self.continues:
            raise UsageError(
                "engine 'openai' is to continue a response that was begun: set continue_final_message = true if the "
                "server knows that field (vLLM, SGLang and assay serve do), or api = 'completions'"
            )

    def body(self, request: Request, n: int, seed: int) -> dict[str, Any]:
        """Return what to post for ``n`` of the request's responses."""
        sampling = request.sampling
        body: dict[str, Any] = {"model": self.model, **self._prompt(request), "n": n}
        body |= {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self.max_tokens_field: sampling.max_tokens,
        }
        body["seed"] = seed & (2**63 - 1)
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if sampling.stop:
            body |= {"stop": list(sampling.stop), "include_stop_str_in_output": True}
        if self.logprobs:
            body["logprobs"] = True if self.api == "chat" else 1
        if isinstance(self.vocabulary, Tokenizer):
            body["return_token_ids"] = True
        if self.schema is not None:
            shape = {"name": "answer", "schema": dict(self.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return {k: v for k, v in body.items() if k not in self.omit} | dict(self.extra)

    def _prompt(self, request: Request) -> dict[str, Any]:
        prompt, begun = self._led(request.prompt), self.vocabulary.decode(request.prefix) if len(request.prefix) else ""
        if self.api == "chat":
            messages = (
                [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [_message(m) for m in prompt]
            )
            if not begun:
                return {"messages": messages}
            messages.append({"role": "assistant", "content": begun})
            return {"messages": messages, "add_generation_prompt": False, "continue_final_message": True}
        if isinstance(self.vocabulary, Tokenizer):
            return {"prompt": [*self.vocabulary.encode(prompt).tolist(), *map(int, request.prefix)]}
        return {"prompt": (prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)) + begun}

    def _led(self, prompt: Prompt) -> Prompt:
        """Return a prompt with the system message before it, unless it has one."""
        if self.system is None:
            return prompt
        messages = [Message(role="user", content=prompt)] if isinstance(prompt, str) else list(prompt)
        led = [] if messages and messages[0]["role"] == "system" else [Message(role="system", content=self.system)]
        return (*led, *messages)

    def most(self, body: Mapping[str, Any], n: int, max_tokens: int) -> tuple[int, int]:
        """Return how many tokens a prompt and ``n`` responses can have at most: a token is at least a byte of text."""
        prompt = body.get("prompt")
        if isinstance(prompt, list):
            return len(prompt), n * max_tokens
        texts = [prompt] if isinstance(prompt, str) else [_text(m["content"]) for m in body["messages"]]
        # Templates put marks and, some of them, a system message of their own around.
        return sum(len(text.encode("utf-8", "replace")) + 16 for text in texts) + 64, n * max_tokens

    def sound(self, answer: Mapping[str, Any], n: int) -> None:
        """Raise :class:`Unsound` unless the answer has ``n`` responses that can be read, or more."""
        choices = answer.get("choices")
        good = [c for c in choices if _said(c) is not None] if isinstance(choices, list) else []
        if len(good) < n:
            part = {**answer, "choices": good} if good else None
            empty = isinstance(choices, list) and any(_is_null(c) for c in choices)
            raise Unsound(f"the server gave {len(good)} of {n} responses{' (content: null)' if empty else ''}", part)

    def is_sound(self, answer: Mapping[str, Any], n: int) -> bool:
        """Tell whether :meth:`sound` has nothing to object to."""
        try:
            self.sound(answer, n)
        except Unsound:
            return False
        return True

    def episodes(self, answer: Mapping[str, Any], request: Request, n: int) -> list[Episode]:
        """Return the first ``n`` responses of an answer, fewer where it has fewer."""
        choices = [c for c in answer["choices"] if _said(c) is not None]
        if sorted(c.get("index", -1) for c in choices) == list(range(len(choices))):
            choices.sort(key=lambda c: c["index"])
        prompt = self.prompt_ids(request, answer.get("prompt_token_ids"))
        return [self._episode(c, request, prompt) for c in choices[:n]]

    def prompt_ids(self, request: Request, told: Any = None) -> np.ndarray:
        """Return the ids of what an episode continues, the server's where it tells them."""
        if told and isinstance(self.vocabulary, Tokenizer):
            return np.asarray(told, dtype=np.int64)
        prompt = self.vocabulary.encode(request.prompt)
        return np.concatenate([prompt, np.asarray(request.prefix, dtype=np.int64)]) if len(request.prefix) else prompt

    def _episode(self, choice: Mapping[str, Any], request: Request, prompt: np.ndarray) -> Episode:
        text, reason, which = str(_said(choice)), choice.get("finish_reason"), choice.get("stop_reason")
        stop: Stop = ENDED.get(str(reason), "eos")
        if stop == "eos" and request.sampling.stop:
            # A stop string is part of our texts, with all of the token that completes it; of OpenAI's it is not.
            whole = self._whole(choice)
            if whole.startswith(text) and any(s in whole for s in request.sampling.stop):
                text = whole
            elif which in request.sampling.stop and not text.endswith(which):
                text += which
            if any(s in text for s in request.sampling.stop):
                stop = "stop"
        meta: dict[str, Any] = {} if stop != "error" else {"error": f"the server ended the response with {reason}"}
        message = choice.get("message")
        if isinstance(message, Mapping):
            thought = message.get("reasoning_content") or message.get("reasoning")
            meta |= {"reasoning": thought} if isinstance(thought, str) else {}
        tokens, logprobs = self._tokens(choice, text, stop, request.sampling.temperature)
        told = choice.get("prompt_token_ids")
        return Episode(
            prompt=self.prompt_ids(request, told) if told else prompt,
            tokens=tokens,
            mask=np.ones(len(tokens), dtype=bool),
            logprobs=logprobs,
            text=text,
            stop=stop,
            meta=meta,
        )

    def _whole(self, choice: Mapping[str, Any]) -> str:
        """Return the text of all tokens that the server tells of."""
        ids, told = choice.get("token_ids"), choice.get("logprobs")
        if isinstance(ids, list) and isinstance(self.vocabulary, Tokenizer):
            return self.vocabulary.decode(ids)
        shown = _pieces(told) if isinstance(told, Mapping) else None
        return "" if shown is None else b"".join(data for _, data in shown[0]).decode("utf-8", "replace")

    def _tokens(
        self, choice: Mapping[str, Any], text: str, stop: Stop, temperature: float
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return a response's ids, and their log-probabilities where the server tells those of our distribution."""
        ids = choice.get("token_ids")
        ids = ids if isinstance(ids, list) and isinstance(self.vocabulary, Tokenizer) else None
        told = choice.get("logprobs")
        told = told if isinstance(told, Mapping) else {}
        if (shown := _pieces(told)) is not None:
            pieces, values = shown
            whole = b"".join(data for _, data in pieces)
            without_last = b"".join(data for _, data in pieces[:-1])
            if ids is not None or text.encode("utf-8", "replace") in (whole, without_last):
                tokens = self.vocabulary.align(pieces, ids)
                if tokens is not None and len(tokens) == len(values):
                    tempered = self.after_temperature or bool(told.get("after_temperature")) or temperature in (0, 1)
                    return tokens, np.asarray(values, dtype=np.float32) if tempered else None
        if ids is not None:
            return np.asarray(ids, dtype=np.int64), None
        return self.vocabulary.encode_response(text, stop == "eos"), None


def failed(request: Request, prompt: np.ndarray, reason: str) -> Episode:
    """Return the episode of a response that could not be had."""
    empty = np.zeros(0, dtype=np.int64)
    return Episode(prompt, empty, empty.astype(bool), empty.astype(np.float32), "", "error", meta={"error": reason})


def _message(message: Message) -> dict[str, Any]:
    """Return a message as the protocol has it: its pictures are parts of its content."""
    if not (images := message.get("images")):
        return dict(message)
    texts = message["content"].split(MARK)
    if len(texts) != len(images) + 1:
        raise UsageError(f"a message has {len(texts) - 1} marks {MARK!r} for {len(images)} pictures: {texts[0][:60]!r}")
    parts: list[dict[str, Any]] = [{"type": "text", "text": texts[0]}] * bool(texts[0])
    for image, text in zip(images, texts[1:], strict=True):
        parts.append({"type": "image_url", "image_url": {"url": image.url}})
        parts += [{"type": "text", "text": text}] * bool(text)
    return {**{k: v for k, v in message.items() if k != "images"}, "content": parts}


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message's content, and of a picture its URL, which is longer than the tokens it becomes."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else part["image_url"]["url"] for part in content)


def _said(choice: Any) -> str | None:
    """Return the text of a choice, that of a refusal too; nothing if it has none or cannot be read.

    One that ended at its length has the empty text: a model that thinks may spend all of it before the first word.
    """
    if not isinstance(choice, Mapping):
        return None
    message = choice.get("message")
    if isinstance(message, Mapping):
        content = message.get("content")
        if content is None:
            content = message.get("refusal") or ("" if choice.get("finish_reason") == "length" else None)
        return content if isinstance(content, str) else None
    text = choice.get("text")
    return text if isinstance(text, str) else None


def _is_null(choice: Any) -> bool:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    return isinstance(message, Mapping) and message.get("content") is None


def _pieces(told: Mapping[str, Any]) -> tuple[list[Piece], list[float]] | None:
    """Return the tokens of a ``logprobs`` object, of chat or of completions, and their log-probabilities."""
    content = told.get("content")
    try:
        if isinstance(content, Sequence):
            rows = [(str(c["token"]), c.get("bytes"), float(c["logprob"])) for c in content]
        else:
            many = told.get("bytes") or [None] * len(told["tokens"])
            rows = list(zip(map(str, told["tokens"]), many, map(float, told["token_logprobs"]), strict=True))
        pieces = [(name, name.encode() if data is None else bytes(data)) for name, data, _ in rows]
    except (KeyError, TypeError, ValueError):
        return None
    values = [value for _, _, value in rows]
    return None if any(math.isnan(value) for value in values) else (pieces, values)
