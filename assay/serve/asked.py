"""What a client asks, read and checked."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.errors import UsageError, nearest
from assay.media import MARK, Picture
from assay.serve import limits
from assay.types import Tool

IGNORED = {"metadata", "parallel_tool_calls", "prompt_cache_key", "safety_identifier", "service_tier", "store", "user"}
"""Fields that change nothing of a response."""

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "min_p": (0,),
    "modalities": (["text"],),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "repetition_penalty": (1,),
    "response_format": ({"type": "text"},),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
}
"""Fields that are known and not served, and the values at which they ask for nothing."""


class Refusal(Exception):
    """A request is refused: status, message, and the field it is about."""

    def __init__(self, message: str, field: str | None = None, status: int = 400, code: str | None = None):
        super().__init__(message)
        self.field, self.status, self.code = field, status, code

    def plain(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.field, "code": self.code}}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    include_usage: bool = False


class Common(BaseModel):
    """Fields of both kinds of request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    n: int = Field(1, ge=1, le=limits.RESPONSES)
    temperature: float = Field(1.0, ge=0, le=100)
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=-1)
    max_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] = []
    seed: int | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    return_token_ids: bool = False
    include_stop_str_in_output: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)


class Completion(Common):
    prompt: str | list[int] | list[str] | list[list[int]]
    logprobs: int = Field(-1, ge=0, le=1)
    """Given at all, the log-probabilities of the sampled tokens are told."""


class Shown(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    url: str


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: str
    text: str = ""
    image_url: Shown | None = None


class Function(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    arguments: str | dict[str, Any] = "{}"


class Called(BaseModel):
    """A function that may be called, or a call of one."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["function"] = "function"
    id: str = ""
    function: Function


class Said(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    role: str
    content: str | list[Part] | None = ""
    tool_calls: list[Called] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class Chat(Common):
    messages: list[Said] = Field(min_length=1)
    logprobs: bool = False
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: list[Called] = Field([], max_length=limits.TOOLS)
    tool_choice: str | dict[str, Any] = "auto"
    add_generation_prompt: bool = True
    continue_final_message: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request.

    Attributes:
        prompts: each a text, token ids, or chat messages.
        begun: the beginning of the response that is to be continued.
        seed: of the first prompt; the i-th has the i-th number from it.
        tools: that may be called.
    """

    chat: bool
    fields: Common
    prompts: list[Any]
    begun: str
    max_tokens: int
    logprobs: bool
    seed: int
    tools: tuple[Tool, ...] = ()


def read(content: Any, chat: bool, served: str, longest: int, context: int, sighted: bool = False) -> Asked:
    """Check a request's body.

    Args:
        content: the parsed JSON.
        chat: whether it is a chat completion.
        served: name of the model.
        longest: ``max_tokens`` of a chat that does not say.
        context: of the model, in tokens; prompts that cannot fit are refused, untokenised.
        sighted: whether the model sees pictures.

    Raises:
        Refusal: something in it is wrong or not served.
    """
    if not isinstance(content, Mapping):
        raise Refusal("the body must be a JSON object")
    given = {k: v for k, v in content.items() if v is not None and k not in IGNORED}
    kind: type[Common] = Chat if chat else Completion
    for name in [name for name in NEUTRAL if name in given and name not in kind.model_fields]:
        if given.pop(name) not in NEUTRAL[name]:
            raise Refusal(f"{name} is not served here; leave it out", name)
    for name in given:
        if name not in kind.model_fields:
            raise Refusal(f"unknown field {name!r}{nearest(str(name), kind.model_fields)}", str(name))
    try:
        fields = kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise Refusal(f"{where}: {first['msg']}", str(first["loc"][0]) if first["loc"] else None) from None
    if fields.model != served:
        raise Refusal(
            f"the model {fields.model!r} does not exist; this server has {served!r}", "model", 404, "model_not_found"
        )
    if any(not text for text in fields.stops):
        raise Refusal("stop: a stop string must not be empty", "stop")
    if len(fields.stops) > limits.STOPS or any(len(text) > limits.STOP for text in fields.stops):
        raise Refusal(f"stop: at most {limits.STOPS} stop strings of {limits.STOP} characters are served", "stop")
    prompts, begun, limit, logprobs = _chat(fields, sighted) if isinstance(fields, Chat) else _plain(fields)
    limit = limit or longest
    if fields.n * len(prompts) > limits.RESPONSES:
        raise Refusal(f"n times the number of prompts must not exceed {limits.RESPONSES}", "n")
    if fields.n * limit * len(prompts) > limits.TOKENS:
        raise Refusal(f"n times max_tokens, of all prompts, must not exceed {limits.TOKENS}", "max_tokens")
    for prompt in prompts:
        _fits(prompt, begun, context, "messages" if chat else "prompt")
    seed = secrets.randbits(62) if fields.seed is None else fields.seed & (2**63 - 1)
    tools = _tools(fields) if isinstance(fields, Chat) else ()
    return Asked(chat, fields, prompts, begun, limit, logprobs, seed, tools)


def _tools(fields: Chat) -> tuple[Tool, ...]:
    if fields.tool_choice not in ("auto", "none"):
        raise Refusal("tool_choice: auto and none are served here", "tool_choice")
    if fields.tool_choice == "none":
        return ()
    return tuple(Tool(t.function.name, t.function.description, t.function.parameters) for t in fields.tools)


def _plain(fields: Common) -> tuple[list[Any], str, int | None, bool]:
    assert isinstance(fields, Completion)
    prompt: Any = fields.prompt
    many = isinstance(prompt, list) and (not prompt or not isinstance(prompt[0], int))
    prompts = prompt if many else [prompt]
    if not prompts or any(not isinstance(p, str) and not p for p in prompts):
        raise Refusal("prompt: an empty list of prompts or of tokens", "prompt")
    for text in prompts:
        _whole(text, "prompt")
    return prompts, "", fields.max_tokens or 16, fields.logprobs >= 0


def _chat(fields: Chat, sighted: bool) -> tuple[list[Any], str, int | None, bool]:
    messages = []
    for said in fields.messages:
        content, images = _content(said.content or "", sighted)
        _whole(content, "messages")
        message: dict[str, Any] = {"role": "system" if said.role == "developer" else said.role, "content": content}
        message |= {"images": images} if images else {}
        if said.tool_calls:
            message["tool_calls"] = [_call(called) for called in said.tool_calls]
        message |= {k: v for k in ("tool_call_id", "name") if (v := getattr(said, k)) is not None}
        messages.append(message)
    begun = ""
    if fields.continue_final_message:
        if messages[-1]["role"] != "assistant" or len(messages) < 2:
            raise Refusal("continue_final_message: the last message must be the assistant's, after another", "messages")
        begun = messages.pop()["content"]
    elif not fields.add_generation_prompt:
        raise Refusal(
            "add_generation_prompt = false is served with continue_final_message alone", "add_generation_prompt"
        )
    limit = fields.max_completion_tokens or fields.max_tokens
    return [tuple(messages)], begun, limit, fields.logprobs


def _content(content: str | list[Part], sighted: bool) -> tuple[str, tuple[Picture, ...]]:
    """Return a message's text, with a mark for each picture, and the pictures; these come as ``data:`` URLs alone."""
    if isinstance(content, str):
        return content, ()
    texts, images = [], []
    for part in content:
        if part.type == "image_url" and part.image_url is not None and sighted:
            images.append(_picture(part.image_url.url))
        elif part.type != "text":
            seen = "text and pictures" if sighted else "text"
            raise Refusal(f"messages: content of type {part.type!r} is not served here, only {seen}", "messages")
        texts.append(MARK if part.type == "image_url" else part.text)
    text = "".join(texts)
    if images and text.count(MARK) != len(images):
        raise Refusal(f"messages: the text of a message with pictures must not have {MARK!r}", "messages")
    return text, tuple(images)


def _picture(url: str) -> Picture:
    try:
        return Picture.from_url(url)
    except UsageError as error:
        raise Refusal(f"messages: image_url: {error}", "messages") from None


def _call(called: Called) -> dict[str, Any]:
    """Return a call as chat templates take it, its arguments as an object where they are one."""
    arguments: Any = called.function.arguments
    if isinstance(arguments, str):
        _whole(arguments, "messages")
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return {"type": "function", "id": called.id, "function": {"name": called.function.name, "arguments": arguments}}


def _fits(prompt: Any, begun: str, context: int, field: str) -> None:
    """Refuse a prompt too long for the context, by its characters or its tokens, before work is put into it."""
    most, unit = limits.characters(context), "characters"
    if isinstance(prompt, tuple):
        size = sum(len(said["content"]) + len(str(said.get("tool_calls", ""))) for said in prompt) + len(begun)
    elif isinstance(prompt, str):
        size = len(prompt)
    else:
        size, most, unit = len(prompt), context - 1, "tokens"
    if size > most:
        raise Refusal(
            f"a prompt of {size} {unit} leaves no room for a response in the model's context of {context} tokens; "
            f"at most {most} {unit} are read",
            field,
            code="context_length_exceeded",
        )


def _whole(text: Any, field: str) -> None:
    """Refuse text with half a character in it, which JSON can spell and no tokenizer takes."""
    try:
        if isinstance(text, str):
            text.encode()
    except UnicodeEncodeError:
        raise Refusal(f"{field}: half of a surrogate pair is no character", field) from None
