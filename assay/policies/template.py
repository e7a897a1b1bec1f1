"""A model's chat template as a recipe wants it: another one, the variables that it reads, a system message first.

All of it is written into the template itself. So whoever has the tokenizer, an engine, a server or a person who loads
what was trained, asks the model as it was asked here; a variable that a caller names goes before what stands there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateError, meta, nodes
from jinja2.ext import Extension

from assay.errors import UsageError, nearest
from assay.types import Message

PASSED = {
    *("messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token", "pad_token", "unk_token"),
    *("raise_exception", "strftime_now"),
}
"""Variables and functions that every template is given."""


def set_template(
    tokenizer: Any, template: str | None = None, values: Mapping[str, Any] | None = None, system: str | None = None
) -> None:
    """Give a tokenizer the chat template that a recipe asks for.

    Args:
        tokenizer: of transformers; changed.
        template: Jinja text, or the path of a file of it, ``*.jinja``; the tokenizer's own unless given.
        values: of variables that the template reads, such as ``{"enable_thinking": False}``.
        system: put before messages that do not begin with a system message.

    Raises:
        UsageError: there is no template, it cannot be read or refuses such messages, or it reads no such variable.
    """
    values = values or {}
    if template is None and not values and system is None:
        return
    own = getattr(tokenizer, "chat_template", None)
    if template is None and not own:
        raise UsageError("the model has no chat template for model.chat_values and model.system; give model.template")
    # Tokenizers with several templates have one for plain conversations, and others, as for tools, beside it.
    known: dict[str, str] = own if isinstance(own, dict) else {"default": str(own)}
    texts = known if template is None else {"default": _read(template)}
    for text in texts.values():
        _check(text, values)
    first = _first(values, system)
    made = {name: first + text for name, text in texts.items()}
    tokenizer.chat_template = made if len(made) > 1 else made["default"]
    asked: list[Message] = [Message(role="user", content="?")]
    try:
        text = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    except TemplateError as error:
        raise UsageError(f"the chat template refuses a question with what model says of it: {error}") from None
    if system is not None and system.strip() not in text:
        raise UsageError("model.system: the chat template leaves system messages out; give model.template")


def _read(template: str) -> str:
    path = Path(template).expanduser()
    if "{" in template or "\n" in template:
        return template
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"model.template: {template} is no Jinja text, and as a file: {reason}") from None


def _check(text: str, values: Mapping[str, Any]) -> None:
    """Raise UsageError for values that the template does not read: a slip would change nothing, in silence."""
    syntax = Environment(extensions=[_Generation, "jinja2.ext.loopcontrols"])
    try:
        read = meta.find_undeclared_variables(syntax.parse(text))
    except TemplateError as error:
        raise UsageError(f"the chat template is no Jinja: {error}") from None
    for name in values:
        if name not in read:
            known = sorted(read - PASSED)
            raise UsageError(
                f"model.chat_values: the chat template reads no {name!r}{nearest(name, known)}; it reads "
                f"{', '.join(known) or 'none'}"
            )


def _first(values: Mapping[str, Any], system: str | None) -> str:
    """Return what stands before a template."""
    out = "".join(
        f"{{%- if {name} is not defined %}}{{%- set {name} = {_literal(value)} %}}{{%- endif %}}"
        for name, value in values.items()
    )
    if system is not None:
        message = _literal({"role": "system", "content": system})
        out += (
            "{%- if not messages or messages[0]['role'] != 'system' %}"
            f"{{%- set messages = [{message}] + (messages | list) %}}{{%- endif %}}"
        )
    return out


def _literal(value: Any) -> str:
    """Return a value as Jinja writes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    raise UsageError(f"model.chat_values: {value!r} is no text, number, truth value, list or table")


class _Generation(Extension):
    """The block ``{% generation %}`` of transformers, which marks what an assistant says."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)
